"""Vocabulary: common English words, as they stand in lower case inside a sentence.

Capitalised they are headings or emphasis, or the start of a sentence. Names that are also words
(Grace, Target) are not told apart here; that is for whoever judges a run.
"""

from __future__ import annotations

_WORDS = """
able absolute abstract academic accelerate accent accept access accessories accident acclimate
account accountant accuracy accurate accurately achieve acid acidic acoustic acrylic act active
actual adapt adaptive additives address adds adequate adhere adhesive adjust admin administrative
administrator admire adopt adore ads adult advantage adventure advice advise advisor advocacy
advocate aerodynamic aesthetic affair affect afraid afterlife afternoon against age aged agencies
agency agenda agent aggressive agile aging ago agree agricultural agriculture ahead ahhh aid aim
aioli air airbrush aircraft airflow airline airtight airways aka alarm album alcohol alert alfredo
algae algebra algorithm alien align alive allergen allergies allergy allocate allow allowed almond
alone alternate alternative altitude aluminum alumni ambassador ambient ammonia amount analog
analysis analyst analytics analyze anatomy ancestors anchor ancient anecdotes anger angles angry
animal ankle anniversary annual answer anticipate antioxidants antique anxiety aperture app appeal
appendix appetizer apple appliances applied apply appraisal appraiser appreciate approach
appropriate approval approximately apricots aquarium aquatic arch archaeological architectural
architecture archive area arithmetic arm armchair army aroma aromatic arrival arrive arrow art
article artifacts artificial artisanal artisans artistic artwork asked asleep asparagus aspect
aspire assemble assembly assess assessor assets assistant associate assume astronomy athlete
athletic atmosphere atmospheric attach attack attempt attend attic attitude attn attorney attract
audio audiobook authentic author autographed automate automatic autonomy autumn avenger average
avocado avoid award aware awful axe axis babe babies baby bachelor bachelor's backdrop background
backpack backup backyard bacon bacteria bad badge bag bagel baggage baguette bake baked bakery
balcony bald ball ballet balloons bamboo banana band bandages bandwidth bank bar barbecue bare
bargain barista barn barrel barriers bartender base baseball based basic basil basket basketball
batch batches bath bathroom battery battle beach beaches beagle beak bean bear beard beast beat
beauty became become bed bedroom bedside bedtime bee beef beer beeswax beetle began beginner
behavior beige belief belly belong belt bench benchmarks bend beneath beneficial benefit bent
berries bespoke bet bias biases bibimbap big bigger bike bill bin binary binder binge bingo
biographical biological biomarkers biomedical biometric bioplastics bird birth birthday birthstone
bit bite bitter biz black blade blame blank blanket blast bleed blend blended blender bless blind
block blog blonde blood blue blueberries blueberry board boat body boil boiled bold bolognese bolts
bomb bomber bonds bone bonus bonuses book bookstore boost boot booth border bored borrow borrowed
boss bother bottle bottlenecks bottom bought bounce boundaries boutique bow bowl box boxes boy
brain brainstorm brake branch branches brand brass brave bravery bread break breakdown breakfast
breakthroughs breast breath breathe breed breeze brew brewed brick bride bridge brief briefly
bright bring brioche brisket bro broad broccoli broke broken bronze broom broth brother brought
brown brownie browse browser brunch bruschetta brush brushes bubble bucket buddy budget buffer bug
build buildup built bulb bulk bulldog bullet bummer bump bunch bundle burden burger burn burnout
burnt burrito bus buses bush businesses busy butt butter butternut button buy buyers buzz cabin
cabinet cable cacti cafe caffeine cage cake calcium calculate calculator calculus calendar calf
call calm calories camera camp campaign campgrounds campsite campus canals cancer candidate candle
canoe canvas cap capital cappuccino captain capture car caramel caramelize carbohydrates carbon
carbonara card cardamom cardboard cardiac cardio cardiovascular care career carols carpet carriers
carrot carry carve case cash cashback cashew cashier cast castle casual cat catalog catch
categories categorize category catfish cattle caught cauliflower causes cave celebrate cell cello
center central century ceramic cereal ceremony certain certificate chain chair chalk challenge
chamber chamomile champ champagne champion chandelier change channel chapter character
characteristics charcoal charge charm chart chase chassis chat chatbot cheap cheaper cheapest
checkout checkpoints checks cheddar cheek cheer cheese chef chemical chemistry cherish cherry chess
chest chewy chia chicken chickpea chief chihuahua child children chili chill chin chip chives
chocolate choice choir cholesterol choose chop chores chorus chow chronic chunk church cigar
cilantro cinema cinematic cinnamon circle circuit circular circus citizen citrus city civil claim
clap clarify class classes classic classical clean cleaner cleanser cleanups clear clever click
client cliffs climate climb clinic clinical clip clock close cloth clothes cloud cloudy clown club
clue clumsy clutter coach coarser coastal coasters coat cocktail cocoa coconut code coffee coffin
cognates coin cold collaborative collage collar colleague collect collectibles collective
collectors college collie color column comb combat combine combo comedic comedy comet comfort comic
command commentary commerce commercial commit committee common communicate commute compact
companies companion company compare comparison competitive competitor complain complaint
complementary complete completely complex complexes complimentary component compost compound
comprehensive compromise computer concentrate concept concern concert concierge concrete condo
conducive conduct cone confident confirm conflicts connect conservators consider consistency
consistent consistently constant constraints constructive consult consultant consume consumer
contact container contemporary content contest context continued contract contractor contrast
contribute control convenient conventional conversational convert cook cooker cookies cooler
coordinator cope copies copper copy core corgi cork corn corner corporate correct cosmetics cost
costume cottage cotton couch cough council count counter countertops countries country countryside
couple coupon courage course court cousin cover coverage cow coworkers cozy crab crack cracker
craft cranberries crane crap crash crate crawl crazy cream creamy create creative creator creature
credentials credit crest crew cried crime crisis crisp crispy criteria critical critics critique
croissant crop cross crowd crown crucial cruel cruise crumb crunch crunchy crush crust cry crypto
cube cucumber cuddle cue cuff cuisine cultivate cultural culture cumin cup cupboard cupcake cured
curl currency current curriculum curry curse curtain curve cushion custom customer customize cut
cute cutter cycle dachshund dad dad's daddy daily dairy damage dammit damp dance danger dare dark
darker dashboard data database dataset date daughter dawn day daycare dead deadlifts deadline deaf
deal dealer dean death debate debit debris debt decade decals decay decide decided deck decor
decorative dedicate deep deepen deeper deer default defeat defense deficiencies define degree delay
delegate delicate deliver delivery deluxe delve demand demo demographics demonstrate dense dental
deny departure depend deposit depth derivatives describe desert deserve design designer desire desk
desktop despair dessert destroy detail detailed detect determine develop developed developer device
devotional diabetes diagnosis diagnostic dial dialogue diamond diapers dice diced die diet dietary
differ different difficult difficulty diffuser dig digital dill diner dinner dinosaur diorama
diploma direct directly director directories directory dirt dirty disaster discard disclaimer
discomfort discount discover discoveries discovery discuss disease dish dishes dishwasher disk
display disposal dispose disrupt dissolve distribute district ditch dive diverse diversify dividers
dizzy dock doctor doctoral documentaries documentary dog doggy doll dollar dollop domain dome
domestic donate donkey donors donut door dose dot double doubt dough dozen dr draft drag dragon
drain drainage drama dramatic draw drawer drawn dream dress dresser drew dried drift driftwood
drill drink drip drive driven driver drizzle drone drop drought drove drown drum drunk dry dual
duck dude dull dump dunno dust duty dyes dynamic dystopian eager ear early earn earth earthly
earthy easier easily east easy eat eclectic ecommerce economic economy edge edit editor educate
educational educators effect effective efficiency efficient effort egg eggplant eight elbow elder
elderflower electric electrical electrolyte electronic elegant elementary elephant elevate elevator
eliminate elite email embassy embrace embroidery emeralds emerge emergency emotional emotive
empathy emphasis employee empower empty enables enamel encourage end enemies enemy energy engage
engine engineer english enhances ensure enter enthusiasts entire entrepreneur entrepreneurial entry
envelope environmental envy epic episode epoxy equal era ergonomic error escape espresso essay
essential establish estate estimate eternal ethics evaluate event everyday everyone's everywhere
evil exact exam example exceptional excess excessive exchange exclusive execute executive exercise
exhaust exhibit exist exotic expand expect expense expensive experimental expert expertise expire
explode explore expo exposure express expressive extend extended exterior external extra extract
extreme extremely eye fabric face facial fact factor faculty fade faded fail failure faint fairs
fairy faith fajita fake falafel fall fallen false fame familiar families family fan fancy
fantastical fantasy fare farm farmer fashion fast faster fastest fat fate father fatigue fatty
faucet faulty favorite favors favourite fear feast feather feature federal fee feed feedback feel
feet fell fellas felt female feminine fence fertilizer festival festive feta fetch fever fiber
field fierce fiery fight fighter figure figurines file fill film filter filthy final finale
finalize financial finger fingerprints finish finishes fire firefighter fireplace fireproof
fireworks firm firmware fish fit five fix fixed fixtures fizz flag flakes flaky flame flash flashes
flat flavor flea flesh flexor flicker flight flip float flock flood floor floral flour flow flower
fluffy fluid flute fly flyers foam focaccia focus focuses fog fold folder folk folklore follow
follower font food fool foot football footwork force forecast forehand foreign forensic forests
forever forgive forgotten fork form formal format formula forum fossil found founded founder
fountain four fragile frame framed framework franchise fraud freak free freedom freeze freezer
french frequency frequent frequently fresh freshly freshman fret friday fridge fried friend
friendly frisbee frittata frog front frost frozen fruit fry fuck fuel fueled full fully functional
fund fundamentals fundraiser fungal fur furniture fury fuss future fw gadget gain gala galleries
gallery gallon game gameplay gamut gang garage garbage garden garlic garnish gas gate gather gauge
gaze gazpacho gear gel gelato gem gemstones gender gene genealogy general generate genius genomic
genre gentle gentlemen gently genuine geometric geometry gesture getaway ghost giant gift gin
ginger giraffe girl giveaway gives glass glaze global globe gloomy glory gloss glove glow glue
gluten goal goat god gold golf gone gonna goodies goods goose gouda gourmet governor gown grade
gradient gradual graduate graffiti grain grammar grand grandparents granite granola grape
grapefruit graphic grass gratitude grave gravel gravy gray grease greater greatly greed green
greenery greet grew grey grid grief grill grime grin grip grit groceries grocery ground grounded
group grow growth guacamole guarantee guaranteed guard guest guesthouses guide guided guideline
guilt guilty guitar gum gun guru gust guy gym gymnastics gyro habit habitat hack hahah hail hair
half halfway hall ham hammer hand handbag handle handmade handwritten handy hang hangers happen
happily harbor hard harder hardware hardy harmony harsh harvest hashtag hat hatch hate haunt hay
head heal health healthcare healthier healthy heap hear heart heartburn hearty heat heater heavier
heavy hectic heel height held hell helmet helped helps hemp hen herbal herbs herd heritage hero
heroes hesitate heyy heyyy hidden hide hierarchical hierarchy high higher highest highlight highly
highway hiit hike hill hint hip historic historical histories history hit hive hmmmm hobbies hobbit
hobby hockey hold holder holes holiday hollow holy home homemade homeowner honest honey honor hood
hoodie hook hookups hoop hop hopes horizon hormone horn horror horse horsepower hose hospital host
hostel hostile hot hotel hour hourly house household howdy hr hub hue hug human humble humidifier
hummus humor hunger hungry hunt hurricane hurried hurry hurt husband husky hustle hut hybrid
hygiene ice icon iconic idea ideal identifier identifies identify idiot idle idol ignore ill image
imagery immediate immediately immense immerse immersive impact important impressive improv improve
impulse incentivize incident include included inclusive income increase independent index
indicators indie individual indoor indulge industrial industries industry infant infinite
inflammatory influencers influences info infographic inform informal informatics informative
informed infrastructure ingredient inhibitors initial initiative injuries injury ink inner
innovative input insect insert insider insight inspect inspector inspire install instant instinct
instructor intake integrate intellectual intend intended intensive intent intentional interact
interactive interest interface interior intermediate internal international internet interpret
intersect interval interview intimacy intimate intricate intro introduce introspective intuitive
invent inventory investigate invite invoice involve iron island issue item itinerary ivy jacket
jail jam jar jaw jazz jeans jelly jet jewelers jewelry job jog join joint joke jolly journal
journey joy judge juggle juice juicy jump jungle junior jury justice justify jute kale kebab keeps
kept kettle key keyboard keychain keyword kick kid kiddo kids' kill kimchi king kingdom kiss kit
kitchen kite kitten knee kneel knew knife knight knobs knot know knowledge known kosher lab label
labor labrador lack lactic ladder ladies lady laid lake lamb lamp land landlords landmark landscape
lane language laptop large larger lasagna laser late lateral latin latte laugh launch laundry lava
lavender law lawn lawyer lay layer layout lazy lead leader leaf leafy league leak lean leap learn
leash leather leaves lectures led left leftover leg legacy legal legend legendary leisure lemme
lemon lend lender length lens lenses lentil leopard lesson letter lettuce level liberal libraries
library license lid lie life lifestyle lifetime lift light lighter lightly lightweight likes limb
lime limit line linear linen linger link lip liqueur liquid list literary literature litter live
liver lizard load loan lobby lobster local locate lock locker log logistics logo lonely longer
looks loop loose lord lose loss lost lot lottery loud lounge loved lover loves low lower loyal
loyalty lube lubricant luck luggage lunch lung lunge luxury lying lyrical ma'am machine mad madam
magazine magic magical magnesium magnet mail main maintain major maker makes makeup male mall mama
man manage manager mane mango mantra manual manufacturer map maple marathon marble march margarita
marinade marine maritime mark markers market marketplace marriage married martial martini mask mass
massage massive master master's masterpiece mat match matches mate material math mathematical
mathematics matrix matte matter maximize maximum mayor maze meadow meal means measure meat
mechanical mechanics medal media medical medicine medium meet meetups melon melt member membrane
mementos memorabilia memorial memories memory men mental mentor menu merchandise merchants merit
merry mesh mess message met metal metallic metastasis method metrics metro mic mice microfiber
micronutrients microphone middle midfoot midnight midsole midwestern mild milder mile mileage
military milk million mimic minded mindset mineral mingle mini minimal minimize minimum minister
ministry minor minute miracle mirror misery miso miss mist mistake mix mixed mixer mixes mobile
mock modal mode model moderate modern modest modify modular module moist moisture moisturizer
mojito mold mom mom's mommy money monitor monk monkey monster month monthly mood moon mop moral
mornin mortgage mosaic mosquito moss moth mother motherboard motor motorcycle mount mountain mouse
mousse mouth move moved movie mozzarella mr ms mucus mud muffin mug mule multi multiple multitask
mum mural murder murmur muscle museum mushroom music musical mustard mute mutual mystery myth
nachos nail naked name nanny nap narrative narrators narrow nasty national natural nature naughty
navigate navy nb nearby neat necessary neck necklace needed needle needs negative neglect negotiate
neighborhoods neighbors neon nephew nerve nest net network neural neutral new newer newsletter
newspaper nicely niche nickel nicotine niece night nightmare nightstand nine nitrate nitrogen noble
nod noise nonprofit noodle nook noon normal north nose nostalgia notebook notes notice novel nozzle
number nurse nursery nut nutrient nutritional nutty nylon oat oath oatmeal obey object objective
obliques obstacle obtain occupational occur ocean odd odor odyssey offer office officer official
offline offset ohhh oil old older olive omelette onion online oof ooo opera opinion opponents ops
opt optical optics optimal optimize optional oral orange orbit orchestra orchid order oregano organ
organic organizational organize organizer origami origin original orthopedic ostrich outcomes
outdoor outfit outlet outline output outreach outro outsole oven overcome overdrive overhead
overlap overload overnight overtime overview owe owl own owned owner ox oxygen oyster pace pack
package packet padded pads paella page paid pail pain paint painter pair pal palace pale paleo
palette pan pancake pancreatic panel panic panoramic pantry pants papa paper paperwork paprika
parade paradise paragraph parameters parcel parent park parmesan parrot parsley part partial
participants participate particular partner partnerships party pass passage passenger passionate
passive passport password pasta paste pastries pastry patch path patient patio patrol pattern pause
paved paw pea peace peach peaches peak peanut peat pebble pedal pedalboard pedestrian pediatric
peek pen pencil pendant penguin people pepper percent percentage perfectly perform performed
perfume period perks permanent permit persian persistent person personal personalize perspective
persuade pest pesto pet petal pharmacy phase phd philosophy pho phone photo photographers phrase
physical physics piano pic pickled pickles pickup picnic picture pie piece pig pigeon pilates pile
pill pillow pilot pin pinch pine pineapple pink pipe pirate pit pitch pitcher pizza place plain
plan plane planet plank planner plant planter plastic plate platform play playback player playoff
playtime plea plot plow plug plugins plum plumber plush pocket pod podcast poem poetry point poker
pole police policies policy polish polite political politics polls polyurethane pond pony poodle
pool pop popcorn popular porch pork portfolio portrait ports pose positive post postcard poster
posture pot potassium potato potatoes potential potluck pottery pouch pouches pound pour powder
power practical practice praise prawn pray prayer predators predict predictive prefer preferences
premium prep prepaid prepare present preserve preset president press pressure pretend prevent prey
price pride primary prime primer prince princess principal principle print prior prioritize prison
privacy private privilege prize pro proactive probiotics problem procedure proceeds process
processor produce product prof professional professor proficiency profile profit program programmer
progress progressive project promise promote promotional prompt proof prop propane proper properly
properties property proposal propose prose protect protective protector protein prove provide
provider ps psychedelic psychological public publish puddle pug pull pump punch puppy purchase pure
purple purpose purse pursue pursuits push puzzle pyramids quantum quarantine quarrel quarter
quarterly quartz queen queer queries quesadilla quest queue quiche quiet quilt quinoa quit quiz
quizzes quote rabbit race racial rack racket radio raffle raft rag rage rail rain rainbow
rainforest raise rake ram ramen ran ranch random range rap rapid rare raspberries raspberry rat
rate ratio ravioli raw rays razor re reach react reader ready realistic realize realm realtor rear
reason rebel rebirth reboot recap receipt receive recent recipe recipient reclaimed recognize
recommend recommended record recover recovery recreate recreational recruiter recurrent recycle
recycled red redeem reduce reeds reef ref refer referrals refine reflect reflective reflector
refresh refrigerator refuel refuge refugee refund region regional regret regular regularly regulate
rehab rehydrate reiterate reject relapse relative relax relaxed release relevant relief religion
rely remain remedy reminder reminds remote removal remove renewal rent rental repair repeat repel
repellent replace replay replenish reply report representative reptile repurpose request require
resale rescue research researchers reserve residential residents resistant resolve resonant resort
resource respect respond response rest restaurant restorative restore restrooms result resume
retail retailer retain retina retreat retrieve retriever retro return reuse reveal revenue reverse
review revisit rhythm ribbon rice rich richer ricotta rid riddle ride rifle rights rigid rim ring
riot rise risk risotto ritual river riverbank rivets road roam roast robe robot robotics rock
rocket rod rogue role roll rollout romantic roof rooftop rookie room root rope rose rotten
rottweiler rough round route router routine row royal royalty rub rubber rude rug ruin rule rum
rumor run runner rural rush rust rustic sack saddle safe safely safety saffron sail sake salad
salary sale salmon salon salsa salt sample sand sandal sandwich sandwiches sat satellite satin
saturday sauce sausage savage saver saves savor savory saxophone scale scams scan scar scarf scary
scavenger scenario scene scenery scenic scent schedule school scientific scissors scone scoop scope
score scrambled scraper scratch scratches scream screen screw script scrub scrum sculpture sea
seafood seal seams search seashells season seasonal seat secondary seconds secret secretary secure
seed seek select self self-care selfie sell seller semester semiconductor semifinals seminar send
senior sense sensor sensory sent sentimental separate serial series serum serve server service
sesame set setbacks settle settled setup seven severe sex sexual shade shadows shake shallow shaman
shame shampoo shape shaped shares sharp shed sheep sheesh sheet shelf shell shelter shelves
shepherd sheriff shield shift shine shiny ship shirt shit shock shoe shoot shop shore short shorter
shot shoulder shout shovel showcase shower shows shred shredded shrimp shrug shut shutter shuttle
shy siamese side sigh sign signage signal signature significant significantly silent silica
silicone silk silly silver similar simmer simple simpler simplify sin sincere sing singer single
sink sir sis sister sit site six size skeleton skewers ski skill skillet skin skincare skip skirt
skull sky skyline slack slave sleek sleep sleeve slept slice slide slider slightly slim slime slip
slippery slope slow slower slowly sly small smaller smart smartphone smell smile smoke smoky smooth
smoothie snack snail snake snap snapper sneak sneakers sneeze snow soak soap sober soccer social
societies society sock soda sodium sofa soft softer software soil solar sold soldier sole solid
solo solve someone's son song soo sooo sophomore sorbet sore sorta soul sound soundbar soup sour
source sourdough south southeast soy spa space span spaniel spanish spare spark spatula speak
speaker spear special specialize specialty species specific specs spectacular speech speed spell
spend spent sphere spice spicy spider spike spill spin spinach spine spinner spirit spiritual
splash split spoiler spoke sponsor spoon sport spot spray spread spreadsheet sprinkle sprints
sprouts spy squad square squash squat squirrel stack stadium staff stage stain stair stake
stakeholders stale stamina stamp stand standalone standard star starch stare starter starts startup
state static statistical statistics stats statue status stay steak steal stealth steam steamed
steel steep stem step stereo stereotypes stevia stew stick sticker sticky stiff stiffer sting stir
stock stomach stone stood stool stops storage store stories storm story stove straight strain
strange strap strategic strategies strategy straw strawberries strawberry stream streamers
streamline street strength strengthen stress stretch stretches stride strike strip stripe stroke
strong stronger structural structure struggle stubborn student studies studio study stuff stuffed
stump stupid sturdy style sub subject submit subscribe substances substitute substrate subtle
subway success successes succulent suffer sugar sugary suggest suit suite summarize summary summer
summit sun sunday sunken sunlight sunrise sunscreen sunset sunshine sup superhero supernatural
supervisor suppliers supplies supply support supportive suppose surface surgery surplus surprise
surreal surround survey survival survive sushi suspect suspense swamp swan swap swarm sway swear
sweat sweater sweep sweetener sweetheart sweetie swift swim swing swipe switches sword syllabus
symbolic symphony symptoms sync syndrome synthetic syrup system systemic tabby table tablet tabs
tackle taco tactile taekwondo tag tai tail tailor takeaways takes tale talent talks tall tame tango
tank tap tape target tarot tart task taste tattoo taught tavern tax taxes taxi tea teach teacher
teal team teammates teamwork tear tease tech technical technique technologies teen telescope temper
temperature template temple temporary tempura ten tend tennis tent teriyaki term terminal terrace
terracotta terrain terrier test testimonials text textbook textiles texture than theater theatre
theatrical theft theme themed theoretical theory therapeutic therapies therapy thermometer thesis
thick thicker thief thin thinly thinner third thirst thorn thoroughly thousand thread three
threshold thrift thrill thriller throat throne throw thumb thunder thyme ticket tickle tide tidy
tie tier tight tighten tile tilt time timeframe timeline timer tin tiny tip tiramisu tire tired
tissue title toad toast toddler todo toe tofu toilet toiletries toiletry tomato tomatoes tomb tone
tongue tonic tons tool toolkit tooth toothbrush top topic torch tornado tortilla toss total touch
touches tough tour towel tower town toxic toy trace track tracker trade traders traditional traffic
trail trailers train trainer trans transfer transform transgender translate translucent
transparency transport trap trash trauma travel traveler tray tread treasure treat treaty tree
tremble trend trendy trial triangle triathlon tribe trick tricky trigger trilogy trim trip tripod
trivia troop trophy tropical trouble truck trumpet trunk trust truth tub tube tulip tumor tune
tuner tunnel turkey turmeric turn turnaround turtle tutor tutorial tv tweet tweezers twig twin
twine twist tying type typical ugly ukulele ultimate ultrasonic umbrella uncle uncover
undergraduate underground understand underwater uneven uniform union unique unit unity universal
universe unknown unlock unpleasant unusual unwind upbeat update upgrade upgraded upkeep upload
upper ups upset urban urge urgency urine usage user uses utensil vacant vaccine vacuum vague vain
valet valid valley value vampire van vanilla vanish varies varieties variety varnish vary vase vast
vault vegan vegetarian veggies vehicle vein velvet vendor venture venue versatile verse vertical
vest vet veterans veterinarian vibe vibrant vibrato victim video view viewer viewpoints village
villain vinaigrette vine vinegar vineyard vintage vinyl violent violin viral virtual virus visa
visitors visits visual visualize vitamin vocabulary vocal vodka voice volleyball volleys volume
volunteer vote vow waffles wage waist waiter waitress waiver wake walk wall wallet walnut wander
wanna war warehouse warm warmth warn warranty warrior wasabi wash washes wasp wassup waste watch
watches water waterfront wave wax waxes ways weak wealth weapon wear weather weave web webinar
website wedges weed week weekend weekly weigh weight weird welfare west wet wetlands wheat wheel
whew whip whisk whiskey whisper whistle white wholesale wicker wide widely wider widespread widow
width wife wig wild wildlife win wind window windshield wine wineries winery wing winner winter
wipe wire wired wisdom wise witch witty wizard wolf wolverine wolves woman women won wood wooden
words wore work worker workflow workforce workout workplace workshop workspace world worldwide worm
worn worries worry worst worth wound woven wrap wreck wrist writer written wrong wrote wtf xoxo
yacht yard yarn yawn year yeast yell yellow yoga yogurt yooo young younger youth zebra zen zero zip
zombie zone zoo zucchini zumba
"""

VOCABULARY = frozenset(_WORDS.split())
