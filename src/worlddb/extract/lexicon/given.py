"""Given names: words that are somebody's name wherever they stand, and words that may be."""

from __future__ import annotations

# No English words among these, so they are names at the start of a sentence too.
_SURE = """
aaron abby abdul abigail abraham ada adam adele adrian adriana agnes ahmed aidan aisha akira alan
alana albert alberto alec alejandra alejandro alessandro alex alexa alexander alexandra alexis
alfonso alfred ali alice alicia alina alison allan allen allison alma alonso alvin alyssa amanda
amelia amelie amina amir amit amy ana anastasia andre andrea andreas andrei andrew andy angela
angelica angelina angie anita anjali ann anna annabel anne annette annie anthony antoine anton
antonia antonio anya ari ariana arjun armando arnold arthur arturo asher ashley astrid audrey
augusto austin ava avery axel ayesha barbara barry bart beatrice beatriz becca becky ben benjamin
benny bernadette bernard bernardo bernie bert beth bethany betsy betty beverly bianca blake bob
bobby bonnie boris brad bradley brandon brenda brendan brent brett brian briana brianna bridget
brittany brooke bruce bruno bryan bryce byron caleb callum calvin cameron camila camille carina
carl carla carlo carlos carmen carol carole carolina caroline carolyn carrie casey cassandra cassie
catalina catherine cathy cecilia cedric celeste celia cesar chad chandler chantal charlene charles
charlie charlotte chelsea cheryl chloe chris christian christina christine christoph christopher
christy cindy claire clara clarence clarissa claude claudia clayton clifford clint clive cody colin
colleen connie connor conrad constance cora corey corinne courtney craig cristina curtis cynthia
daisuke dakota damian damien damon dan dana daniel daniela danielle danny daphne darius darlene
darren darryl dave david davide deanna debbie deborah deepak deirdre delia delilah denise dennis
derek derrick desiree dexter diana diane diego dimitri dina dmitri dolores dominic dominique donald
donna dora doreen doris dorothy doug douglas duncan dustin dwayne dwight dylan eddie edgar edith
eduardo edward edwin eileen elaine eleanor elena eli elias elijah elisa elise eliza elizabeth ella
ellen ellie elliot elliott elmer elsa elsie elvira emil emilia emilie emilio emily emma emmanuel
enrique eric erica erik erika erin ernest ernesto esmeralda esteban estelle esther ethan eugene eva
evan evelyn ezra fabian fatima federico felicia felipe felix fernanda fernando fiona flora florence
francesca francesco francis francisco francois frankie franklin franz fred freddie frederick freya
frida friedrich gabby gabriel gabriela gabrielle gareth garrett gavin gemma genevieve geoff
geoffrey george georgia georgina gerald gerard gia gianna gilbert gina giovanni giulia gladys glenn
gloria gonzalo gordon graham greg gregory greta guillermo gus gustavo gwen gwendolyn hailey hamza
hank hannah hans harold harriet harriett harry harvey hassan heather hector heidi helen helena
helene henri henrik henry herbert herman hilary hilda hiroshi holly homer howard hugh hugo ian
ibrahim ida igor imran ines ingrid irene irina isaac isabel isabella isabelle isaiah ivan jackie
jackson jacob jacqueline jacques jaime jake jamal james jamie jana jane janelle janet janice janine
jared jasmine jason javier jeanette jeanne jeff jeffrey jen jenna jennifer jenny jeremiah jeremy
jerome jerry jesse jessica jessie jill jillian jim jimmy jin joan joanna joanne jocelyn jodie joe
joel joey johan johanna johannes john johnny jolene jon jonah jonas jonathan jordan jorge jose
josef joseph josephine joshua josie joyce juan juana juanita judith judy jules julia julian juliana
julie juliet julio justin justine jürgen kai kara karen karim karina karl karla kate katherine
kathleen kathryn kathy katie katrina katya kayla keith kelly kelsey ken kendall kendra kenji
kenneth kenny kevin khalid kiara kim kimberly kirsten klaus kofi kristen kristin kristina kristine
kurt kyle lara larry laura lauren laurence laurie lea leah leandro lee leila lena leo leon leona
leonard leonardo leroy leslie levi lewis liam libby lilian lillian lina linda lindsay lindsey
lionel lisa liz liza lizzie lloyd logan lois lola lora loren lorena lorenzo loretta lori lorraine
lou louis louisa louise luca lucas lucia luciana lucille lucinda lucy luigi luis luisa luka luke
luna lydia lyle lynn mabel madeleine madeline madison magdalena maggie malcolm malik mandy manuel
manuela mara marc marcel marcela marcia marco marcos marcus margaret margot maria mariam mariana
marianne marie mariko marilyn marina mario marion marisa marissa marjorie marlene marta martha
martin martina marvin mary maryam mateo mathew matilda matt matteo matthew matthias maureen maurice
mauricio maximilian maxine maya mayra megan mehmet mei melanie melinda melissa melvin mercedes
meredith mia micah michael michaela micheal michel michele michelle miguel mika mike mikhail mila
mildred milena milo mina mindy miranda miriam misha mitch mitchell mohamed mohammad mohammed moira
molly mona monica monika monique morgan morris moses muhammad myra myrtle nadia nadine nancy naomi
natalia natalie natasha nate nathalie nathan nathaniel neha neil nellie nelson nia nicholas nicola
nicolas nicole nigel nikhil nikki nikolai nina noah noel noelle noemi nora noreen norma norman
octavia oleg olga oliver olivia omar oscar osman otis otto owen pablo paige pam pamela paola
patricia patrick patty paul paula paulina pauline paulo pedro peggy pete peter petra phil philip
philippe phillip phoebe phyllis pierre piotr polly priscilla priya quentin quincy quinn rachel
rafael rahul raj rajesh ralph ramon rana randall raphael raquel rashid raul ravi raymond rebecca
rebekah regina reginald renata renee rex reza rhonda ricardo riccardo richard rick ricky riley rita
robbie robert roberta roberto rocio roderick rodney rodrigo roger rohan roland rolando roman romeo
ron ronald ronnie rory rosa rosalie rosalind rosario rosie ross roxanne ruben rudolf rudy rufus
rupert russell ruth ryan sabrina sadie salma salvador sam samantha samir samuel sandra sanjay
santiago sara sarah sasha saul scarlett scott sean sebastian selena serena sergei sergio seth shane
shannon shaun shauna shawn sheila shelby sheldon shelley shirley sidney silvia simon simone sofia
sonia sonya sophia sophie spencer stacey stacy stan stanley stella stephanie stephen steve steven
stewart stuart susan susana susanna susanne susie suzanne sven sylvia tabitha takeshi tamara tammy
tanya tara tariq tasha tatiana ted terence teresa terrence terri terry tess tessa thea thelma theo
theodore theresa thomas tiffany tim timothy tina tobias toby todd tom tomas tommy toni tony tracey
traci tracy travis trevor tricia trisha tristan troy tyler tyrone ulrich ursula valentina valeria
valerie vanessa vera vernon veronica vicki vicky victoria vijay vikram vince vincent viola virginia
vivian viviana vladimir walter wanda warren wendy wesley whitney wilbur wilfred wilhelm willa
william willie wilma winston xander xavier ximena yan yara yasmin yolanda yosef yuki yuri yusuf
yvette yvonne zachary zack zara zelda zoe zoey zoltan
"""

# English words too: names inside a sentence, nothing certain at its start.
_PERHAPS = """
ace amber angel archie aspen aurora bailey basil bear bella bill billy bishop bliss brandy brook
buck buddy cam candy carter cary chase clay clementine cliff coco cooper coral cricket crystal curt
daisy dale dallas dawn dean dee destiny dewey di dick don drew duke earl ed eden eve faith fern
finn flint frank gale gene gil ginger grace grant guy hal harper haven hazel heath herb hope hunter
iris ivory ivy jack jade jan jasper jay jean jewel jo josh joy lance len les lex lily lucky mac
mark marley marshall mason maverick max mel melody mercy mick miles misty mo nat ned nick norm
oakley olive ollie olly opal oreo parker pat patience pearl penny pepper pip piper poppy precious
rae randy ray reed reese ren rich rio rob robin rocco rocky rod rose rosemary rowan roy roz ruby
rusty sage sal sandy savannah scout shadow shelly sid sierra skye smokey sol sonny spike sue sunny
tad tanner teddy thor tia tori tucker van vic victor violet viv wade ward wes will willow woody xi
yu zac zach zeke
"""

GIVEN = frozenset(_SURE.split())
GIVEN_PERHAPS = frozenset(_PERHAPS.split())
