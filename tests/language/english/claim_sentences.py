"""Sentences and the claims that a careful reader takes from them.

All are said by the user on Wednesday, 3 May 2023.
"""

from __future__ import annotations

ME = "entity:user"

# The sentence, whose claim it is, the relation, the value, and what is no longer so.
CLAIMS: list[tuple[str, str, str, str, str]] = [
    ("I live in Oslo.", ME, "lives in", "Oslo", ""),
    ("i live in Oslo now", ME, "lives in", "Oslo", ""),
    ("We currently live in Denver, Colorado.", ME, "lives in", "Denver, Colorado", ""),
    ("I'm based in New York City.", ME, "lives in", "New York City", ""),
    ("I’m now living in Lisbon!", ME, "lives in", "Lisbon", ""),
    ("Actually, I live in Trondheim.", ME, "lives in", "Trondheim", ""),
    ("I moved to Oslo last week.", ME, "lives in", "Oslo", ""),
    ("I just moved to San Francisco.", ME, "lives in", "San Francisco", ""),
    ("Hey Mel, I moved to Chicago!", ME, "lives in", "Chicago", ""),
    ("I've relocated to Bergen.", ME, "lives in", "Bergen", ""),
    ("We moved back to Spain in March.", ME, "lives in", "Spain", ""),
    ("I moved from Rome to Oslo.", ME, "lives in", "Oslo", "Rome"),
    ("I've lived in Berlin since 2020.", ME, "lives in", "Berlin", ""),
    ("I've been living in Paris for the past 5 months.", ME, "lives in", "Paris", ""),
    ("I live in Oslo with my two cats.", ME, "lives in", "Oslo", ""),
    ("I now live in Oslo, and I love it.", ME, "lives in", "Oslo", ""),
    ("Sarah lives in Boston.", "entity:sarah", "lives in", "Boston", ""),
    ("Sarah Chen moved to Seattle.", "entity:sarah chen", "lives in", "Seattle", ""),
    ("I no longer live in Rome.", ME, "lives in", "", "Rome"),
    ("I don't live in Rome anymore.", ME, "lives in", "", "Rome"),
    ("Sarah doesn’t live in Boston any more.", "entity:sarah", "lives in", "", "Boston"),
    ("I work at Google.", ME, "works at", "Google", ""),
    ("I work for Google in London.", ME, "works at", "Google", ""),
    ("I'm currently working at Ikea.", ME, "works at", "Ikea", ""),
    ("I started a new job at Spotify last month.", ME, "works at", "Spotify", ""),
    ("I've been working at NovaTech for about 4 years.", ME, "works at", "NovaTech", ""),
    ("I joined Google as a product manager.", ME, "works at", "Google", ""),
    ("Tom now works at Netflix.", "entity:tom", "works at", "Netflix", ""),
    ("I switched jobs from IBM to Google.", ME, "works at", "Google", "IBM"),
    ("I no longer work at Google.", ME, "works at", "", "Google"),
    ("I quit my job at Netflix.", ME, "works at", "", "Netflix"),
    ("I'm a nurse now.", ME, "job title", "nurse", ""),
    (
        "I am now a senior software engineer at Google.",
        ME,
        "job title",
        "senior software engineer",
        "",
    ),
    ("I got promoted to team manager.", ME, "job title", "team manager", ""),
    ("I work as a teacher.", ME, "job title", "teacher", ""),
    ("My job title is staff engineer.", ME, "job title", "staff engineer", ""),
    ("My favourite colour is green.", ME, "favorite color", "green", ""),
    ("My favorite color is now dark blue.", ME, "favorite color", "dark blue", ""),
    ("My favorite book is Dune.", ME, "favorite book", "Dune", ""),
    ("My new favorite restaurant is Chez Panisse.", ME, "favorite restaurant", "Chez Panisse", ""),
    ("My phone number is 555-123-4567.", ME, "phone number", "555-123-4567", ""),
    ("My mobile number is now +47 555 12 345.", ME, "phone number", "+47 555 12 345", ""),
    ("My phone number changed to 555-999-0000.", ME, "phone number", "555-999-0000", ""),
    ("My email is ada@example.com.", ME, "email", "ada@example.com", ""),
    (
        "I changed my email from ada@example.com to bob@example.org.",
        *(ME, "email", "bob@example.org", "ada@example.com"),
    ),
    ("My work email is ada@firm.example.", ME, "work email", "ada@firm.example", ""),
    (
        "My address is 12 Elm Street, Springfield.",
        *(ME, "address", "12 Elm Street, Springfield", ""),
    ),
    ("My wifi password is hunter2.", ME, "wifi password", "hunter2", ""),
    ("My birthday is May 3.", ME, "birthday", "May 3", ""),
    ("Sarah's birthday is on June 4th.", "entity:sarah", "birthday", "June 4th", ""),
    ("My manager is Priya Shah.", ME, "manager", "Priya Shah", ""),
    ("Priya is my new manager.", ME, "manager", "Priya", ""),
    ("Tom is no longer my manager.", ME, "manager", "", "Tom"),
    ("I'm 31 years old.", ME, "age", "31", ""),
    ("I just turned 32.", ME, "age", "32", ""),
    ("No, I live in Dublin, not Rome.", ME, "lives in", "Dublin", "Rome"),
    ("I live in Dublin now, not in Rome anymore.", ME, "lives in", "Dublin", "Rome"),
    ("I work at Meta, not Google.", ME, "works at", "Meta", "Google"),
    ("I left Rome and now live in Lyon.", ME, "lives in", "Lyon", "Rome"),
    ("My home is now in Lyon.", ME, "lives in", "Lyon", ""),
    ("My manager is now Lars.", ME, "manager", "Lars", ""),
    ("My manager is Lars, not Anna.", ME, "manager", "Lars", "Anna"),
    ("My manager is now Berta.", ME, "manager", "Berta", ""),
    ("My boss is now Wei.", ME, "boss", "Wei", ""),
    ("My boss is now Kwame Mensah.", ME, "boss", "Kwame Mensah", ""),
    ("My husband is now Hiro.", ME, "husband", "Hiro", ""),
    ("My manager is now Chidi.", ME, "manager", "Chidi", ""),
    ("My wife is now Svetlana.", ME, "wife", "Svetlana", ""),
    ("My wife is now Lucía.", ME, "wife", "Lucía", ""),
    ("My girlfriend is now Siobhan.", ME, "girlfriend", "Siobhan", ""),
    ("My wife is now Élodie.", ME, "wife", "Élodie", ""),
    ("My wife's name is Anna.", ME, "wife", "Anna", ""),
    ("I work at 7-Eleven now.", ME, "works at", "7-Eleven", ""),
    ("I work at St. Mary's Hospital now.", ME, "works at", "St. Mary's Hospital", ""),
]

# The text, the relation, the value, and what it was.
NOTES: list[tuple[str, str, str, str]] = [
    ("The user lives in Rome.", "lives in", "Rome", ""),
    ("The user now lives in Paris.", "lives in", "Paris", ""),
    ("User lives in Rome", "lives in", "Rome", ""),
    ("user lives in rome", "lives in", "rome", ""),
    ("The user has moved to Ghent.", "lives in", "Ghent", ""),
    ("Note: the user lives in Rome, Italy.", "lives in", "Rome, Italy", ""),
    ("The user likes tea, and the user lives in Rome.", "lives in", "Rome", ""),
    ("The user works at Acme.", "works at", "Acme", ""),
    ("User no longer works at Google.", "works at", "", "Google"),
    ("The user is 31 years old.", "age", "31", ""),
    ("The user changed their email to b@x.com.", "email", "b@x.com", ""),
    ("User's favorite food is sushi.", "favorite food", "sushi", ""),
    ("User's favorite food is Pizza.", "favorite food", "Pizza", ""),
    ("The user’s favourite colour is red.", "favorite color", "red", ""),
    ("The user's name is Ada Chen.", "name", "Ada Chen", ""),
    ("The user's email is a@x.com.", "email", "a@x.com", ""),
    ("The user's phone is 555-123-4567.", "phone number", "555-123-4567", ""),
    ("The user's manager is Sarah Chen.", "manager", "Sarah Chen", ""),
    ("Sarah Chen is the user's manager.", "manager", "Sarah Chen", ""),
    ("Lives in Rome", "lives in", "Rome", ""),
    ("lives in rome", "lives in", "rome", ""),
    ("Now lives in Zürich.", "lives in", "Zürich", ""),
    ("Moved to Paris last month.", "lives in", "Paris", ""),
    ("Works at Google.", "works at", "Google", ""),
    ("No longer works at Google.", "works at", "", "Google"),
    ("i live in rome", "lives in", "rome", ""),
    ("i moved to new york last week", "lives in", "new york", ""),
    ("i'm now living in oslo, and i love it", "lives in", "oslo", ""),
    ("My favorite color is red.", "favorite color", "red", ""),
    ("My favorite season is spring.", "favorite season", "spring", ""),
    ("My favorite movie is Alien.", "favorite movie", "Alien", ""),
    ("My favorite movie is The Matrix.", "favorite movie", "The Matrix", ""),
    ("My favorite movie is Spirited Away!", "favorite movie", "Spirited Away", ""),
    ('My favorite movie is "Blade Runner".', "favorite movie", "Blade Runner", ""),
    ("My favorite movie is Heat, and I love it.", "favorite movie", "Heat", ""),
    ("My favorite band is Queen.", "favorite band", "Queen", ""),
    ("I quit Tern.", "works at", "", "Tern"),
    ("I quit Acme and joined Beta.", "works at", "", "Acme"),
    ("I left Google for Meta.", "works at", "", "Google"),
    ("I left Acme and joined Beta as a designer.", "works at", "", "Acme"),
]

NO_CLAIMS_IN_CHAT = """
Do you think I live in Oslo?
Do I live in Oslo.
If I live in Oslo, I pay more tax.
I live in Oslo if it is summer.
I might live in Oslo.
I'd live in Oslo.
I would live in Oslo.
I'll move to Oslo.
I will live in Oslo.
I'm moving to Oslo next year.
I'm going to live in Oslo.
I want to live in Oslo.
I used to live in Oslo.
I lived in Oslo.
I lived in Rome from 2010 to 2014.
I have lived in Rome.
I've lived in Rome, Paris and Oslo.
I never lived in Oslo.
I don't live in Oslo.
I do not live in Oslo.
She said I live in Oslo.
Tom told me Sarah lives in Boston.
Sarah says she lives in Boston.
I think Sarah lives in Boston.
I heard that Tom works at Netflix.
"I live in Oslo," she said.
He wrote: "I live in Oslo."
I live in Oslo, she said.
I live in Oslo and Rome.
I live in Oslo in summer.
I live in Oslo half of the year.
I live in Oslo during the week.
I moved to Oslo for a month.
I moved to Oslo for two years.
I moved to Oslo when I was five.
I moved to Oslo, then to Rome.
I moved to Linux.
We moved to Slack last year.
I moved the meeting to Monday.
Sarah moved the launch to May 30, 2026.
I live in fear.
I live in a small house.
My dream is that I live in Oslo.
I dreamed I live in Oslo.
Imagine I live in Oslo.
Where I live in Oslo it rains.
I visited Oslo.
I have been to Rome.
I visited Rome last year and Paris in May.
I like Oslo.
I love Paris in spring.
I speak French.
Sarah speaks Spanish.
My friend is Tom.
Tom is my friend.
My friends are Tom and Sarah.
My sister is Anna.
I like tea.
My hobby is chess.
I work at home.
I work for Sarah.
I work at Google and Meta.
I worked at Google.
I used to work at Google.
I also work at Google.
I applied to work at Google.
I work at Google on weekends.
I might quit my job at Google.
I joined Facebook.
I joined Planet Fitness last week.
I'm working at Starbucks today.
I had an interview at Google.
I got a job offer from Google.
I'm a fan now.
I'm now a member of the club.
I am a mother now.
I am now a big fan of the nurse.
I'm a nurse.
I work as a part-time teacher.
I was a teacher.
My favorite restaurant is closed now.
My favorite team is losing.
My favorite food is spicy.
My favorite song is playing.
My favorite part is the ending.
My favorite book is on the table.
My favorite book was Dune.
My favorite books are Dune and Emma.
My favorite color is not green.
My favorite drink is hard to pick.
Is my favorite color green?
My phone number is private.
My phone number is not 555-123-4567.
What if my phone number is 555-123-4567?
My old phone number is 555-123-4567.
My former manager is Priya.
My next manager is Priya.
My password is secure.
My email is full.
My address is unknown.
My birthday is soon.
My birthday is next week.
My manager is on vacation.
My manager is Priya or Tom.
My wife is from Oslo.
My job is hard.
My role is clear.
I'm 31.
I turned 30 pages.
I turned 31 into a prime.
I'm 10 minutes late now.
He lives in Oslo.
They live in Oslo.
My sister lives in Oslo.
My sister Anna lives in Madrid.
You live in Oslo.
We live in Oslo sometimes.
Acme is based in Berlin.
We switched from GPT-4 to GPT-4o.
I changed my mind.
I changed my email.
I no longer like tea.
I no longer live here.
I live in Oslo and sometimes in Rome.
I work at Google, or did until May.
In the game I live in Oslo.
I live in Rome and live in Oslo.
I live in Rome and work at Kolibri on weekends.
I live in Rome and work at Kolibri, she said.
I live in Rome and work at Kolibri in the game.
I live in Rome and work at Kolibri during the summer.
I live in Rome or work at Kolibri.
I live in Rome and also work at Kolibri.
I live in Rome and used to work at Kolibri.
I live in Rome and might work at Kolibri.
I live in Rome and want to work at Kolibri.
I live in Rome and Tom works at Google.
Do I live in Rome and work at Kolibri?
Maybe I live in Rome and work at Kolibri.
If I live in Rome and work at Kolibri, I pay tax.
Suppose I live in Rome and work at Kolibri.
I no longer live in Rome and work at Kolibri.
I don't live in Rome and work at Kolibri.
I don't live in Rome and work at Kolibri anymore.
I used to live in Rome and work at Kolibri.
I will live in Rome and work at Kolibri.
I want to live in Rome and work at Kolibri.
She said I live in Rome and work at Kolibri.
"I live in Rome and work at Kolibri," she said.
He lives in Rome and works at Google.
My sister lives in Rome and works at Google.
My friend Anna lives in Rome and works at Google.
A user lives in Rome and works at Kolibri.
I work at Kolibri as of next month.
I work at Google effective tomorrow.
I live in Rome from next week.
In my novel, I live in Rome and work at Kolibri.
In 2010, I moved to Rome.
Years ago, I moved to Rome and joined Google as a nurse.
After college, I moved to Rome, and I work for Google.
According to my passport, I live in Rome.
She texted me: I moved to Rome, and I work at Google.
I live in Dublin, not far from Rome.
I live in Dublin, not Rome or Paris.
I left Rome this morning.
I left Rome and work at Google.
I left Rome and might live in Lyon.
I left the office and live in fear.
My home is in Lyon.
My home is now in ruins.
My manager is Great.
My manager is German.
My manager is Busy.
My manager is Awesome.
My manager is On leave.
My manager is On Leave.
My manager is AFK.
My manager is HR.
My manager is Google.
My manager is Oslo.
My manager is Tbd.
My boyfriend is Bi.
My hairdresser is Supercuts.
I prefer light mode now, but dark mode at night.
I quit smoking but started again.
I eat fish and rice.
Our standup moved to 10am today.
My wife is Catholic.
My wife is Pregnant.
My wife is Vegan.
My wife is Texan.
My partner is Acme.
My wife's maiden name is Berg.
My dog's name is Rex.
I work at 24-Hour shifts.
I work at Night.
""".strip().splitlines()

NO_CLAIMS_IN_NOTES = """
The customer lives in Rome.
A user lives in Rome.
Users live in Rome.
Each user's manager is Sarah Chen.
The other user's email is a@x.com.
The user interface lives in Rome.
The user's friend lives in Rome.
The user might live in Rome.
The user does not live in Rome.
The user used to live in Rome.
The user wants to live in Rome.
If the user lives in Rome, show the tax.
Is the user based in Rome?
He said that the user lives in Rome.
The user and Tom live in Rome.
The user's email is required.
The user's password is hashed.
The user's phone is broken.
My name is Ana.
Live in Rome.
Lives in fear.
Lives in Rome. Likes tea.
Works at night.
Works for me.
Moved to Falcon.
Moved to Done.
Moved to Paris, then to Rome.
i live in nice
i live in a small house
i moved to react
i moved to marketing
We moved to Falcon.
Sarah moved to Falcon.
I moved from Jenkins to Buildkite.
I almost moved to Ghent.
I moved to Zürich and Basel.
My favorite movie is Alien or Heat.
My favorite movie is Alien, Heat and Jaws.
My favorite movie is over.
MY FAVORITE MOVIE IS PLAYING.
My favorite food is overrated.
I left Starbucks.
I left Google for Christmas.
I left Google for Paris.
I might quit Acme.
I quit sugar.
I'm a nurse.
""".strip().splitlines()

NO_CLAIMS = [*NO_CLAIMS_IN_CHAT, *NO_CLAIMS_IN_NOTES]
