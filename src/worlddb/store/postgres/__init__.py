"""A store in a PostgreSQL database: many tenants, several server processes, managed backups."""
