from __future__ import annotations

from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st
from run_fakes import asking, request, rule

from nd7tui.engine.policy.rules import Effect, Scope, Verdict
from nd7tui.engine.run.denials import QUIET, SECOND, Denials, Ended, Outcome, Refuse, Tell
from nd7tui.engine.run.noise import is_noise
from nd7tui.engine.run.options import Ask

HOLD = 20 * SECOND


def core(hold=HOLD, ask=Ask.PROTECTED, *, log_noise=False):
    return Denials(hold, ask, log_noise=log_noise, is_noise=is_noise)


def tells(actions):
    return [action for action in actions if isinstance(action, Tell)]


def test_the_first_is_told_at_once_before_its_caller_hears():
    one = request()
    assert core().arrive(one, 0) == [Tell(one, "d1"), Refuse(one)]


def test_repeats_within_a_second_are_one_more_frame():
    denials = core()
    denials.arrive(request(1), 0)
    for number in range(2, 9):
        assert denials.arrive(request(number, pid=number), number) == [Refuse(request(number, pid=number))]
    assert denials.tick(SECOND - 1) == []
    (told,) = denials.tick(SECOND)
    assert (told.count, told.repeat_of, told.id) == (7, "d1", "d2")
    assert denials.tick(2 * SECOND) == []
    assert denials.next_due() is None


def test_a_denial_that_goes_on_is_one_frame_a_second():
    denials = core()
    told = []
    for step in range(100):
        told += tells(denials.arrive(request(step), step * SECOND // 10)) + tells(denials.tick(step * SECOND // 10))
    assert sum(tell.count for tell in told) >= 90
    assert len(told) <= 11


def test_what_differs_is_told_on_its_own():
    denials = core()
    denials.arrive(request(1), 0)
    assert tells(denials.arrive(request(2, target=b"/y"), 0))
    assert tells(denials.arrive(request(3, exe="/bin/other"), 0))
    assert tells(denials.arrive(request(4, op="unlink"), 0))


def test_a_call_that_comes_past_a_deadline_loses_none_of_those_who_waited():
    # The listener is read before the clock is looked at: the next call may come before the tick that ends the question.
    denials = core(ask=Ask.ALL)
    denials.arrive(request(1), 0)
    late = denials.arrive(request(2), HOLD)
    assert [action.request.id for action in late if isinstance(action, Refuse)] == [1, 2]
    assert denials.waiting == 0


def test_after_a_rule_change_the_next_is_a_first_again():
    denials = core()
    denials.arrive(request(1), 0)
    denials.arrive(request(2), 1)
    assert [tell.count for tell in denials.rules_changed()] == [1]
    assert tells(denials.arrive(request(3), 2))[0].repeat_of is None


def test_noise_is_refused_in_silence_unless_asked_for():
    noisy = request(target=b"/usr/lib/x/__pycache__/a.cpython-311.pyc.1234", exe="/usr/bin/python3.11")
    assert core(ask=Ask.ALL).arrive(noisy, 0) == [Refuse(noisy)]
    logged = core(ask=Ask.ALL, log_noise=True).arrive(noisy, 0)
    assert logged == [Tell(noisy, "d1", noise=True), Refuse(noisy)]


def test_noise_hides_only_what_it_names():
    for one in (
        request(target=b"/usr/lib/x/__pycache__/a.pyc", exe="/usr/bin/bash"),
        request(target=b"/home/u/.bashrc", exe="/usr/bin/python3"),
        request(target=b"/home/u/a.pyc", exe="/usr/bin/python3"),
    ):
        assert not is_noise(one)


def test_a_protected_file_is_asked_about_and_expires():
    denials = core()
    one = asking()
    assert denials.arrive(one, 5) == [Tell(one, "d1", hold=HOLD)]
    assert denials.next_due() == 5 + HOLD
    assert denials.tick(4 + HOLD) == []
    assert denials.tick(5 + HOLD) == [Refuse(one), Ended(one, "d1", Outcome.EXPIRED)]


def test_the_same_target_is_refused_at_once_for_a_minute_after():
    denials = core()
    denials.arrive(asking(1), 0)
    denials.tick(HOLD)
    again = asking(2)
    assert denials.arrive(again, HOLD + 1) == [Tell(again, "d2"), Refuse(again)]
    later = asking(3)
    denials.tick(HOLD + QUIET)
    assert tells(denials.arrive(later, HOLD + QUIET))[0].hold == HOLD


def test_other_callers_of_the_same_join_the_question():
    denials = core()
    first, second = asking(1), asking(2, pid=7)
    denials.arrive(first, 0)
    assert denials.arrive(second, 1) == []
    assert denials.waiting == 2
    assert denials.settle(first, Outcome.ALLOWED, 2) == []
    assert denials.settle(second, Outcome.DENIED, 3) == [Refuse(second), Ended(second, "d1", Outcome.DENIED)]
    assert denials.settle(second, Outcome.DENIED, 3) == []


def test_never_hold_and_never_ask():
    one = asking()
    assert Refuse(one) in core(hold=0).arrive(one, 0)
    assert Refuse(one) in core(ask=Ask.NONE).arrive(one, 0)


def test_ask_all_holds_every_refusal_but_final_ones():
    assert tells(core(ask=Ask.ALL).arrive(request(), 0))[0].hold == HOLD
    for scope in (Scope.NEVER, Scope.RUN):
        final = request(verdict=Verdict(Effect.DENY, rule(Effect.DENY, scope=scope), "no"))
        assert Refuse(final) in core(ask=Ask.ALL).arrive(final, 0)


def test_the_end_of_the_run_refuses_what_is_held():
    denials = core()
    first, second = asking(1), asking(2)
    denials.arrive(first, 0)
    denials.arrive(second, 0)
    ended = denials.finish(1)
    assert [action.request for action in ended if isinstance(action, Refuse)] == [first, second]
    assert Ended(second, "d1", Outcome.GONE) in ended
    assert denials.waiting == 0


steps = st.lists(
    st.tuples(
        st.integers(0, 3 * SECOND),
        st.sampled_from(["deny", "ask", "tick", "gone", "allow", "no", "rules"]),
        st.integers(0, 3),
    ),
    max_size=60,
)


@example([(0, "deny", 0), (SECOND, "deny", 0)], SECOND, Ask.ALL)
@given(steps, st.sampled_from([0, SECOND, HOLD]), st.sampled_from(list(Ask)))
def test_whatever_happens_every_call_is_answered_once_and_counted_once(script, hold, ask):
    denials = core(hold, ask)
    now, arrived, refused, released, told, open_ids = 0, 0, Counter(), Counter(), 0, set()

    def carry_out(actions):
        nonlocal told
        for action in actions:
            if isinstance(action, Refuse):
                refused[action.request.id] += 1
            elif isinstance(action, Tell):
                told += action.count
                if action.hold is not None:
                    open_ids.add(action.id)
            else:
                open_ids.remove(action.id)

    for wait, what, which in script:
        now += wait
        if what in {"deny", "ask"}:
            arrived += 1
            make = request if what == "deny" else asking
            carry_out(denials.arrive(make(arrived, b"/t%d" % which), now))
        elif what == "tick":
            carry_out(denials.tick(now))
            assert denials.next_due() is None or denials.next_due() > now
        elif what == "rules":
            carry_out(denials.rules_changed())
        elif held := denials.held():
            one = held[which % len(held)]
            outcome = {"gone": Outcome.GONE, "allow": Outcome.ALLOWED, "no": Outcome.DENIED}[what]
            if outcome is not Outcome.DENIED:
                released[one.id] += 1
            carry_out(denials.settle(one, outcome, now))
        assert len(denials.held()) == denials.waiting
    carry_out(denials.finish(now))
    answered = refused + released
    assert answered == Counter(range(1, arrived + 1))
    assert told == arrived
    assert not open_ids
