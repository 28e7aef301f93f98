"""Shares: how many everyday texts have a word, whatever they are about.

A world of a few texts cannot know that "get" says less than "walrus": each is in one of them. So a
small world is looked at beside texts of the usual kind. Shares are rough on purpose: what matters
is the difference between a word that many texts have and one that hardly any has.
"""

from __future__ import annotations

from worlddb.language.words import words

_SHARES = {
    0.2: """
a an the this that there i me my we you it is are was be do have of to in on at for from with by
about and or but if so as just like not what how can would get
""",
    0.06: """
he she they them their your our one all any some more much up out off go make know think want need
really also when which who then than into good great nice thing time help day new way use look try
see take say tell no yes will find well sure love lot here now too back been even still over thank
feel keep something start put year
""",
    0.02: """
after before again ago always another around away because best better big bit call change come
could course different down each easy end enough ever every everything anything nothing far few
first give happen hard hope idea important interest kind last late later least leave left less let
little live long maybe mean mind month move never next number offer often old only other own part
people place plan please point pretty probably question ready right same second set share should
since small someone soon sort sound stop stuff such suggest talk thought through today together
tomorrow tonight turn two three type under until very wait was week weekend went where while whole
why without wonder word world worth yesterday yet add ask become believe between bring care check
choose close cool deal decide especially exactly example excite experience fact fine follow full
general guess hand happy hear high hit hold hour include information instead join line list listen
main might minute miss most many near normal note once open option order perfect perhaps pick piece
possible problem quick quite reach reason recent recommend remember rest save seem send show side
simple single sit situation sorry special specific spend stand stay step support switch themselves
tip top total touch tough toward true understand usual various version view wish worry wrong
definitely actually amazing awesome yeah hey wow glad must during
""",
}
_SHARE = {
    token: share
    for share, listed in sorted(_SHARES.items())
    for word in listed.split()
    for token in words(word)
}


def share_of(word: str) -> float:
    """Return the share of everyday texts that have a word, given as a token; 0 if hardly any."""
    return _SHARE.get(word, 0.0)
