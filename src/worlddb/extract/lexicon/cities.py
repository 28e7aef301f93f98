"""Cities: towns that are well known by their name, and what one moves to that is no town.

Those that are known as a name wherever they stand are in `known.PLACES`. Here are those of several
words, and those that are a word or a given name as well: Nice, Reading, Florence.
"""

from __future__ import annotations

_CITIES = """
aachen aalborg aarhus aberdeen abidjan abuja acapulco accra adelaide agadir akron albany albuquerque
aleppo alexandria algiers alicante almaty amiens amman ankara annapolis antalya antwerp arequipa
arlington arnhem asheville asmara asunción augsburg avignon bacolod baden-baden baghdad baku
baltimore bamako bandung bangor bari barranquilla basel basra bath beirut belmopan bengaluru bergamo
bergen bern bethesda biarritz bielefeld bilbao billings bishkek bismarck bloemfontein bochum bogotá
boise bologna bolzano bonn bradford braga brasilia brasília bratislava braşov brașov bremen brescia
brno bruges brugge brunswick bucaramanga buffalo bursa busan bydgoszcz cadiz caen cagliari cairns
cali cambrai canberra cannes canterbury carlisle cartagena casablanca catania cebu chandigarh
charlotte charlottesville chatham chattanooga chemnitz chengdu chennai chester chisinau chişinău
christchurch cluj cluj-napoca cochabamba coimbra colchester colombo como conakry concord cordoba
cork corvallis coventry cracow cuenca curitiba cusco cádiz córdoba dakar dalian darmstadt darwin
davenport davis dayton debrecen delft denpasar derby dhaka dijon djibouti dnipro doha donetsk
dortmund douala dover dresden duisburg duluth dundee dunedin durban durham durrës dushanbe
dusseldorf düsseldorf eindhoven erfurt erlangen espoo essen eugene evanston exeter fargo faro
ferrara fez florence florianópolis fortaleza freetown freiburg fresno fribourg fukuoka funchal
gaborone gainesville galway gdansk gdańsk gdynia genoa ghent gijón giza goa gothenburg granada graz
grenoble groningen guadalajara guangzhou guayaquil gyumri göteborg göttingen haarlem haifa halifax
halle hamilton hangzhou hannover hanover harare harrisburg hartford hebron heidelberg helsingborg
heraklion hobart honolulu hue huntsville hyderabad iași ibiza ingolstadt innsbruck inverness ipswich
irvine isfahan islamabad ithaca izmir jackson jacksonville jaipur jeddah jena juneau kabul
kaliningrad kampala kandahar karachi karlsruhe kassel katowice kaunas kazan kharkiv khartoum kiel
kigali kingston kinshasa kobe kolkata konstanz kosice košice kraków kristiansand kumasi köln lagos
lahore lancaster lansing larnaca lausanne leicester leiden leipzig leuven lexington lille lima
limassol limerick limoges lincoln linköping linz ljubljana lodz louisville lourdes luanda lublin
lucca lucerne lucknow lugano lund lusaka luzern lviv lübeck maastricht macau madison mainz malaga
malmo malmö managua manaus mandalay mannheim mapusa maputo marburg maribor marseilles medellin
medellín medina mersin messina metz milwaukee minsk modena mogadishu mombasa monrovia monterrey
montevideo montpellier montreux mostar mosul multan munchen murcia muscat mysore málaga mérida
münchen münster nagasaki nagoya nagpur nancy nanjing nantes nashua newark newcastle newport nice
nicosia nijmegen niš norfolk norman norwich nottingham novosibirsk nuremberg nuuk nyc nürnberg
oaxaca odense odesa odessa olomouc olympia omaha oostende oporto oran orleans orléans ostend ostrava
oulu oviedo padua palermo palma pamplona panjim pasadena patras penang pensacola peoria perpignan
perugia pescara peshawar philly pisa pittsfield plovdiv plymouth plzeň podgorica poitiers pompeii
porto portsmouth potsdam poznan poznań pretoria pristina providence provo puebla pune quito rabat
raleigh ravenna rawalpindi reading recife regensburg regina reims rennes reno reykjavík richmond
riga rijeka rimini riverside riyadh roanoke rochester rockford rosario roskilde rostock rotterdam
rouen saarbrücken salamanca salem salerno salford salvador samarkand sanaa sandefjord santander
sarajevo sarasota saskatoon savannah schwerin scranton segovia shannon sheffield shiraz shreveport
siena skopje sofia southampton spartanburg split spokane springfield srinagar stamford stavanger
stirling strasbourg stuttgart sucre sunderland surabaya surat suva swansea syracuse szczecin szeged
tabriz tacoma tallahassee tallinn tampere tangier taranto tarragona tartu tashkent tbilisi tehran
tempe thessaloniki tijuana tilburg timisoara timișoara tirana toledo topeka toruń toulon tours
trento trier trieste tripoli tromso tromsø trondheim tucson tulsa tunis turku ulm umeå uppsala
utrecht vaasa vaduz valletta valparaiso valparaíso varanasi varna venlo verona versailles vicenza
victoria vientiane vigo vilnius vitoria volgograd voronezh västerås waco warwick waterloo weimar
wichita wiesbaden winchester windhoek windsor winnipeg winterthur wolfsburg wolverhampton worcester
wroclaw wrocław wuhan wuppertal würzburg xiamen yaoundé yekaterinburg yerevan yokohama york zadar
zanzibar zaragoza zwolle zürich örebro łódź
"""
_OF_SEVERAL_WORDS = """
abu dhabi|addis ababa|ann arbor|baton rouge|belo horizonte|buenos aires|cape town|cedar rapids
|colorado springs|corpus christi|den haag|des moines|el paso|fort collins|fort lauderdale|fort worth
|grand rapids|green bay|guatemala city|ho chi minh city|hong kong|jersey city|kansas city
|kuala lumpur|la paz|la plata|la spezia|las cruces|las palmas|las vegas|le havre|le mans|little rock
|long beach|los angeles|mexico city|milton keynes|new delhi|new haven|new orleans|new york
|new york city|newport beach|nizhny novgorod|novi sad|palm springs|palo alto|panama city|phnom penh
|porto alegre|port louis|puerto vallarta|quebec city|rio de janeiro|saint louis|saint paul
|saint petersburg|salt lake city|san antonio|san diego|san francisco|san jose|san josé|san juan
|san marino|san salvador|san sebastian|san sebastián|santa ana|santa barbara|santa clara|santa cruz
|santa fe|santa marta|santa monica|santa rosa|santo domingo|sao paulo|são paulo|sioux falls
|st. gallen|st. john's|st. louis|st. paul|st. petersburg|tel aviv|the hague|virginia beach
|washington dc|west palm beach
"""
CITIES = frozenset(_CITIES.split()) | frozenset(_OF_SEVERAL_WORDS.replace("\n", "").split("|"))

# What else one moves to, with a capital: a team, a tool, a company.
_DEPARTMENTS = """
accounting accounts administration analytics architecture backend billing business commerce
communications compliance consulting content crm customer data delivery department design
development devops division ecommerce engineering enterprise events facilities finance frontend
fulfillment growth hardware hr human infrastructure innovation insights integrations integrity
internal it leadership legal logistics management manufacturing marketing merchandising mobility
onboarding operations ops partnerships payments payroll people performance phase planning platform
pr procurement product production program programme project projects purchasing qa quality
recruiting reliability reporting research revenue risk robotics sales sciences search security
service services social software solutions sourcing squad sre stage staff strategy success support
systems talent taskforce team teams tech technology testing tooling training transformation trust
unit workforce
"""
_TOOLS = """
alacritty angular anki ansible anthropic apache arch asana athena atom aurora azure babel bash bazel
bevy bigquery bitbucket bitwarden bluesky bootstrap brave buildkite bun calendly cassandra celery
chrome chromium circleci clang claude clickhouse clickup clojure cloudflare codex cohere confluence
consul copilot cosmos couchbase cursor cypress dagster databricks datadog debian deno django docker
drupal duckdb duckduckgo dynamodb edge elasticsearch electron elixir elm emacs ember erlang evernote
excel express fastapi fastmail fedora firebase firefox fish flask flink flutter gatsby gemini gentoo
ghost ghostty git gmail gnome go godot golang gradle grafana graphql grok groovy gulp hadoop haiku
haskell helm heroku hetzner htmx hugo hyprland influxdb insomnia ionic java jekyll jenkins jest
jetbrains joplin julia jupyter kafka kagi kde keras kibana kotlin kustomize lambda langchain laravel
latex lightroom linear linode llama logseq lua magento mailchimp manjaro mariadb mastodon matlab
mattermost maven memcached mercurial mint miro mistral mongo nagios neon neovim netlify next nginx
nix nixos node nomad notion numpy nuxt obsidian ocaml office ollama opentofu opera opus oracle
outlook pandas perforce perl perplexity php pipenv playwright plex podman poetry polars postgres
postgresql postman power preact prefect prometheus proton protonmail puppet pycharm pytest python qt
rabbitmq rails ray react redis redshift rest roam rocky ruby rust safari sap sass scala scrum
selenium sentry signal sketch snowflake solaris solr sonnet spark splunk spring sqlite sublime
supabase surrealdb svelte svn swift sybase tableau tailwind telegram teradata terraform thunderbird
tmux todoist tomcat trino turborepo ubuntu unity unix unreal vagrant vault vercel vim vite vivaldi
vscode vue wasm wayland webex webpack windows word wordpress xcode yarn zed zendesk zig zoho
zookeeper zsh
"""
_COMPANIES = """
academy acme agency ai airlines associates association bain bank barclays brothers capgemini capital
cerner citadel club cognizant college committee company consulting contoso corp corporation firm
fitness foundation fund globex gmbh goldman group gym holdings hooli hospital hotel inc infosys
initech institute insurance international jpmorgan lab laboratories labs llc llp ltd mckinsey media
ministry morgan museum networks palantir partners plc press records restaurant sachs school society
solutions studio studios ubs university ventures wipro
"""
NO_TOWN = frozenset((_DEPARTMENTS + _TOOLS + _COMPANIES).split())
