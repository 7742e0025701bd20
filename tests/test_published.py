from skpml import list_methods
from skpml.metrics import METRICS
from skpml.published import published_results


def test_every_cell_once_under_the_names_of_the_library():
    results = published_results()
    cells = {(result.metric, result.configuration, result.method) for result in results}
    assert len(results) == len(cells) == 5 * 30 * 9
    assert {result.metric for result in results} <= set(METRICS)
    assert {result.method for result in results} <= set(list_methods())


def test_values_of_the_first_and_the_last_table():
    printed = {(r.metric, r.configuration, r.method): (r.mean, r.std) for r in published_results()}
    assert printed["hamming_loss", "mirflickr", "pml-ma"] == (0.169, 0.004)
    assert printed["average_precision", "arts-11", "pml-plr"][0] == 0.560
