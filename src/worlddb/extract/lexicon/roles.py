"""Roles: what somebody or something can be to a speaker: my sister, our landlord, my dog."""

from __future__ import annotations

# At most one at a time, mostly: "my manager" names somebody.
_PERSONS = """
accountant adviser advisor agent assistant babysitter bandmate barber best-friend bestie bf boss
boyfriend brother brother-in-law caregiver carer ceo chiropractor co-founder coach cofounder
counsellor counselor cto dad dad-in-law daughter daughter-in-law dentist dermatologist director
doctor editor ex ex-boyfriend ex-girlfriend ex-husband ex-wife father father-in-law fiance fiancee
fiancé fiancée flatmate foreman gardener gf girlfriend godfather godmother gp grandad granddad
granddaughter grandfather grandma grandmother grandpa grandson guru gynecologist hairdresser
hairstylist half-brother half-sister host housekeeper housemate hubby husband instructor landlady
landlord lawyer manager mechanic mentor midwife mom mother mother-in-law mum nanny neurologist
nutritionist orthodontist partner pastor pediatrician physician physiotherapist plumber priest
principal professor psychiatrist psychologist publisher rabbi realtor roommate sister sister-in-law
son son-in-law soulmate spouse step-brother step-dad step-daughter step-mom step-sister step-son
stepbrother stepdad stepdaughter stepfather stepmom stepmother stepsister stepson supervisor
surgeon teacher therapist trainer tutor twin vet veterinarian wife
"""

# Of these people have several: "my friend" names nobody.
_MANY = """
aunt auntie baby buddy child classmate client co-worker colleague companion cousin coworker
customer employee follower friend godchild goddaughter godson grandchild grandparent guest intern
kid mate neighbor neighbour nephew niece pal parent patient relative sibling student teammate
tenant toddler uncle
"""

# What a pet is, also where it is written with capitals: "my Golden Retriever Max".
_BREEDS = """
beagle boxer bulldog chihuahua cockatiel collie corgi dachshund doodle goldendoodle husky
labradoodle labrador maltese mastiff parakeet poodle pug retriever rottweiler shepherd spaniel
terrier
"""

_PETS = """
bird budgie bunny cat chinchilla dog ferret fish gecko goldfish guinea-pig hamster hedgehog horse
iguana kitten kitty lizard mutt parrot pet pig pony pooch pup puppy rabbit rat shih-tzu snake
stallion tabby tarantula tortoise turtle
"""

_THINGS = """
agency alma-mater band boat brand building business cafe car charity church city clinic college
company country employer firm gym home-town hometown hospital label neighborhood neighbourhood
office publisher restaurant school start-up startup state studio town truck university van village
"""

# Words that may stand between "my" and the role.
_MODIFIERS = """
academic adopted adorable amazing art australian baby ballet basketball beloved best big biological
black border brown business care chemistry chess childhood clever close college cooking current
cute dance dear devoted direct driving elder eldest energetic english estate ex family favorite
favourite fellow first fluffy football former foster friendly furry general german golden good
graduate great great-great guinea guitar gym half heart high history incredible italian kind lab
late lazy little local long-time longtime lovely math maths middle music new newborn next-door nosy
old older oldest only oral orange other own personal pet physical piano playful primary real rescue
rescued running school science second senior shih siamese singing sleepy smart soccer spanish
spiritual step strict sweet swim swimming tabby talented tennis thesis third three-legged travel
twin two university violin voice wedding white wise wonderful work writing yoga young younger
youngest
"""

# Before a name they are part of it: Dr. Chen, Aunt Mary.
_TITLES_SHORT = """
capt col dr fr gen gov lt mr mrs ms mx prof rep rev sen sgt
"""
_TITLES = """
aunt auntie captain chancellor chef coach colonel detective doctor governor grandma grandpa granny
judge king lady lieutenant lord madam mayor miss officer pastor pope president prince princess
professor queen rabbi saint senator sergeant sir uncle
"""

TITLES_SHORT = frozenset(_TITLES_SHORT.split())
TITLES = TITLES_SHORT | frozenset(_TITLES.split())
PERSONS = frozenset(_PERSONS.split())
MANY = frozenset(_MANY.split())
BREEDS = frozenset(_BREEDS.split())
PETS = BREEDS | frozenset(_PETS.split())
THINGS = frozenset(_THINGS.split())
ROLES = PERSONS | MANY | PETS | THINGS
MODIFIERS = frozenset(_MODIFIERS.split())
