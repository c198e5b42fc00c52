"""Keys of several stores: each finds its way back to its store and its optimizer's index."""

from types import SimpleNamespace

from gluon_dist.setup.shared_store import BLOCK, MOST, OWN, numbers_of, place_of, texts_from

TIME_BUDGET_S = 5


def test_no_two_keys_of_any_stores_are_one_and_each_is_found_again():
    taken = set()
    for store in range(MOST):
        made = SimpleNamespace(number=store, may_overwrite=False)
        numbers = (0, 1, BLOCK - 1) if store else (0, 1, BLOCK, 5_000, 39_999)
        for key in numbers:
            (number,) = numbers_of(made, [key], is_first=True)
            assert place_of(number) == (store, key) and number not in taken
            taken.add(number)
        for n, text in enumerate(("a", "b")):
            number = numbers_of(made, text, is_first=True)
            assert place_of(number) == (store, texts_from(store) + n) and number not in taken
            taken.add(number)
    assert max(taken) < OWN - 1 and place_of(OWN) == (None, OWN)
