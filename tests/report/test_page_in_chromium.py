"""The page in a real browser moves as the program does, requests nothing, and is accessible."""

from __future__ import annotations

import csv
import random
import shlex
from contextlib import ExitStack

import pytest

from tco import DataError, evaluate
from tco.evaluation.evaluation import evaluate_each
from tco.report.page.program import script
from tests.catalogue import CATALOGUE
from tests.cli import document, tco
from tests.registry import FORMULAS, ROWS
from tests.report.chromium import BINARY, PAPER, PHONE, WIDE, Opened, browser
from tests.scenario_helpers import HEADLINE, nodes_below, result
from tests.study_helpers import compare_results

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(BINARY is None, reason="Chromium is not installed"),
]

PAIR = ("trn3-nl72x2", "gb200-nvl72")
MOVED = {  # in the units of their files; those with a name of a part are of one scenario
    **{
        "terms.life": (4.0, "year"),
        "terms.rate": (0.07, ""),
        "site.electricity_price": (0.12, "USD/kWh"),
        "site.pue": (1.3, ""),
    },
    **{
        "terms.utilisation": (0.65, ""),
        "site.load_factor": (0.7, ""),
        "parts.trn3.hbm_bandwidth": (4.1, "TB/s"),
        "parts.trn3.tdp": (900.0, "W"),
    },
    **{
        "parts.gb200-gpu.price": (26000.0, "USD"),
        "parts.gb200-gpu.peak_fp8": (4000.0, "TFLOP/s"),
        "workload.input_tokens": (6000.0, ""),
    },
    **{
        "performance.trainium.launch_time": (3.0, "us"),
        "workload.interactivity": (60.0, "token/s"),
    },
}
COMPUTE = """rows => rows.map(([at, values]) => FORMULAS[at](...values))"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def report(folder):
    """The file of two scenarios."""
    path = folder / "report.html"
    done = tco("report", *PAIR, "-o", path)
    assert done.exit_code == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def running():
    with ExitStack() as stack:
        yield stack.enter_context(browser())


@pytest.fixture(scope="module")
def wide(running, report):
    return Opened(running, report, WIDE)


@pytest.fixture(scope="module")
def phone(running, report):
    return Opened(running, report, PHONE, color_scheme="dark")


@pytest.fixture
def fresh(wide):
    """The wide page as it was opened."""
    wide.page.click("#reset")
    wide.settle()
    return wide


def program_metrics(moved_inputs):
    """Return the program's metrics for moved inputs, with every plan chosen again."""
    scenario_results = []
    for name in PAIR:
        settings = {
            path: f"{value!r} {unit}".strip()
            for path, (value, unit) in moved_inputs.items()
            if path in result(name).inputs
        }
        scenario_results.append(evaluate(name, settings, catalogue=CATALOGUE))
    return {
        scenario_result.scenario: scenario_result.metrics
        for scenario_result in compare_results(scenario_results)[1]
    }


def refuse_difference(shown_metrics, expected):
    """Assert that metrics equal those of the engine, and return their number.

    Batches before a step of tiles are found to a millionth.
    """
    count = 0
    for name, metrics in shown_metrics.items():
        for metric, value in metrics.items():
            if metric in expected[name]:
                count += 1
                assert value == pytest.approx(expected[name][metric], rel=1e-6, abs=1e-300), (
                    name,
                    metric,
                )
    return count


def test_every_formula_gives_in_the_browser_what_it_gives_in_python(running):
    page = running.new_page()
    page.add_script_tag(
        content=script(formula.name for formula in FORMULAS).replace(
            "const FORMULAS", "window.FORMULAS"
        )
    )
    numbers = {formula.name: formula_number for formula_number, formula in enumerate(FORMULAS)}
    browser_values = page.evaluate(
        COMPUTE,
        [
            [numbers[row.formula.name], [row.inputs[name] for name in row.formula.parameters]]
            for row in ROWS
        ],
    )
    page.close()
    for row, value in zip(ROWS, browser_values, strict=True):
        assert value == pytest.approx(
            float(row.formula.function(**row.inputs)), rel=1e-12, abs=1e-300
        ), row.id


def test_page_opens_with_the_figures_of_the_report(fresh):
    expected = program_metrics({})
    assert refuse_difference(fresh.everything(), expected) >= 2 * 7
    assert {
        "usd_per_million_output_tokens",
        "perf_per_tco_vs_baseline",
        "tokens_per_s_per_user",
    } <= fresh.metrics()[PAIR[0]].keys()


@pytest.mark.xfail(reason="a moved page lies 0.7 % off the engine", strict=False)
def test_moved_inputs_give_the_metrics_of_the_engine(fresh):
    before = fresh.everything()
    for path, (value, _) in MOVED.items():
        fresh.type(path, value)
    fresh.settle()
    expected = program_metrics(MOVED)
    assert refuse_difference(fresh.everything(), expected) >= 2 * 7
    assert refuse_difference(fresh.metrics(), expected) > 10
    for name in PAIR:  # a page that stands still would show no difference
        for metric in (
            "tco_usd_per_chip_hour",
            "usd_per_million_output_tokens",
            "output_tokens_per_s_per_chip",
        ):
            assert fresh.everything()[name][metric] != pytest.approx(before[name][metric], rel=1e-4)


def test_reset_restores_the_metrics(fresh):
    before = fresh.everything()
    fresh.type("parts.gb200-gpu.price", 30000.0)
    fresh.settle()
    moved_metrics = fresh.everything()
    assert moved_metrics[PAIR[0]] == before[PAIR[0]] | {
        key: value for key, value in moved_metrics[PAIR[0]].items() if "baseline" in key
    }
    assert moved_metrics[PAIR[1]] != before[PAIR[1]]
    fresh.page.click("#reset")
    fresh.settle()
    assert fresh.everything() == before


MOVES, SEED, FAR, NEAR = 200, 11, 0.05, 1e-4
WHERE = """moves => moves.map(([asked, some]) => {
  moved.clear(); pay(asked);
  some.forEach(([path, place]) => move(path, valueAt(CONTROLS.get(path), place)));
  settle();
  return [settings(), NOW.map(found => found.usd_per_million_output_tokens ?? null)];
})"""


@pytest.mark.xfail(reason="a moved page lies 3.9 % below the engine, 3 % are allowed", strict=False)
def test_page_at_any_sliders_costs_what_the_command_line_gives(running, folder):
    """The page is hardly ever cheaper than `--set` and near it in nearly all of many random moves.

    Where the command finds no plan, the page finds none.
    """
    path = folder / "headline.html"
    assert tco("report", "-o", path).exit_code == 0
    assert len(path.read_bytes()) < 1_500_000
    opened_page, dice = Opened(running, path, WIDE), random.Random(SEED)
    controls, who = opened_page.page.evaluate(
        "() => [DATA.controls.map(one => [one.path, one.open]), DATA.who.options.map(([name]) => "
        "name)]"
    )
    control_paths, opened = (
        [name for name, _ in controls],
        [name for name, is_open in controls if is_open],
    )
    moves = []
    for _ in range(MOVES):
        paths = dict.fromkeys(
            [*dice.sample(opened, dice.randint(1, 3)), dice.choice(control_paths)]
        )
        moves.append(
            [dice.choice(["", "", *who]), [(name, dice.randint(0, 1000)) for name in paths]]
        )
    off, possible = [], []
    for settings, costs in opened_page.page.evaluate(WHERE, moves):
        page_settings = dict(words.split("=", 1) for words in settings)
        for page_cost, cost in zip(costs, costs_with(page_settings), strict=True):
            possible.append((page_cost is None) == (cost is None))
            off += [page_cost / cost - 1] if page_cost is not None and cost is not None else []
    assert len(off) > 2 * MOVES
    # a batch is chosen by what decodes, and as deployed prompts are read the slower or quicker for
    # its speed
    assert min(off) > -0.03
    # a batch is found to no more digits where another tile begins
    assert sum(share > -NEAR for share in off) >= 0.95 * len(off)
    assert sum(share <= FAR for share in off) >= 0.95 * len(off)
    assert all(possible)
    assert opened_page.complaints == []
    opened_page.page.close()


def costs_with(settings, names=HEADLINE):
    """Return the cost of a million output tokens of each system with some settings.

    Renters are compared by one statistic. A system that is refused or impossible has none.
    """
    try:
        # implied ones, as no note on a setting without effect is looked for
        evaluations = evaluate_each(names, None, {}, refuse=False, implied=settings)
    except DataError:
        return [None] * len(names)
    return [
        evaluation.result.metrics["usd_per_million_output_tokens"] for evaluation in evaluations
    ]


# workloads whose plans are chosen by something else: requests in flight, a whole queue, a training
# step
OTHERS = {
    "gb200-nvl72": (
        {"workload.concurrency": "256", "workload.interactivity": "5 token/s"},
        {"workload.interactivity": 20.0, "workload.concurrency": 100.0},
    ),
    "h100-hgx8": ({"workload.offline": "1"}, {"workload.input_tokens": 4000.0}),
    "train-gpt3-175b-a100x64": ({}, {"terms.life": 4.0, "parts.a100-sxm-80gb.hbm_bandwidth": 1.5}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_workloads_have_a_pick(running, folder, name):
    workload_settings, moved_inputs = OTHERS[name]
    path = folder / f"{name}.html"
    assert (
        tco(
            "report",
            name,
            *(
                word
                for setting in workload_settings.items()
                for word in ("--set", "=".join(setting))
            ),
            "-o",
            path,
        ).exit_code
        == 0
    )
    opened_page = Opened(running, path, WIDE)
    for slider_values in ({}, moved_inputs):
        words = opened_page.page.evaluate(
            "some => { Object.entries(some).forEach(([path, value]) => move(path, value)); "
            "settle(); return settings(); }",
            slider_values,
        )
        assert len(words) == len(slider_values)
        expected = evaluate(
            name,
            {**workload_settings, **dict(word.split("=", 1) for word in words)},
            catalogue=CATALOGUE,
        )
        assert (
            refuse_difference(
                opened_page.everything(), {name: compare_results([expected])[1][0].metrics}
            )
            >= 4
        )
    assert opened_page.complaints == []
    opened_page.page.close()


def test_owner_can_be_chosen(fresh):
    fresh.page.select_option("#who", "renter")
    fresh.settle()
    assert fresh.page.url.endswith("#terms.perspective=renter")
    words = shlex.split(fresh.command)[1:]
    assert words[-2:] == ["--set", "terms.perspective=renter"]
    rows = {row["scenario"]: row["metrics"] for row in document(*words)["rows"]}
    # its rents are of another statistic
    assert rows[PAIR[0]]["usd_per_million_output_tokens"] is None
    assert set(fresh.metrics()) == {PAIR[1]}
    assert refuse_difference(fresh.metrics(), rows) == 7
    fresh.page.select_option("#who", "hyperscaler")
    fresh.settle()
    words = shlex.split(fresh.command)[1:]
    assert (
        refuse_difference(
            fresh.metrics(), {row["scenario"]: row["metrics"] for row in document(*words)["rows"]}
        )
        > 10
    )
    fresh.page.select_option("#who", "neocloud")  # which nobody sells a Trainium to
    fresh.settle()
    assert "Not possible with trn3-nl72x2" in fresh.page.inner_text("#whatif-verdict")
    assert set(fresh.metrics()) == {PAIR[1]}


def test_table_can_be_downloaded(fresh):
    fresh.type("terms.rate", 0.07)
    fresh.settle()
    with fresh.page.expect_download() as pending_download:
        fresh.page.click("#download")
    rows = list(
        csv.DictReader(pending_download.value.path().read_text(encoding="utf-8").splitlines())
    )
    assert [(row["scenario"], row["set"]) for row in rows] == [
        (name, "terms.rate=0.07") for name in PAIR
    ]
    assert (
        refuse_difference(
            {
                row["scenario"]: {key: float(row[key]) for key in row if "usd" in key}
                for row in rows
            },
            program_metrics({"terms.rate": (0.07, "")}),
        )
        > 5
    )


def test_address_keeps_the_moved_inputs(fresh, running, report):
    moved_inputs = {path: MOVED[path] for path in ("terms.life", "parts.trn3.tdp")}
    for path, (value, _) in moved_inputs.items():
        fresh.type(path, value)
    fresh.settle()
    address = fresh.page.url
    assert address.endswith("#parts.trn3.tdp=900&terms.life=4")
    second_page = running.new_page()
    second_page.goto(address)
    second_page.wait_for_function("() => moved.size === 2")
    assert second_page.evaluate("() => (settle(), JSON.stringify(NOW))") == fresh.page.evaluate(
        "() => JSON.stringify(NOW)"
    )
    # opened, though it is none of the dozen
    assert second_page.locator('input[aria-label^="parts.trn3.tdp,"]').input_value() == "900"
    second_page.close()


@pytest.mark.parametrize(
    "state",
    ["terms.life=-4", "terms.life=NaN", "terms.life=", "nothing=3", "%E0%A4%A=%", "<b>=1", "cost"],
)
def test_address_without_valid_inputs_changes_nothing(fresh, state):
    fresh.page.evaluate("state => { location.hash = state; }", state)
    fresh.settle()
    assert fresh.page.evaluate("() => moved.size") == 0
    assert fresh.complaints == []


def test_printed_command_gives_the_metrics_of_the_page(fresh):
    moved_inputs = {
        path: MOVED[path]
        for path in ("terms.rate", "site.electricity_price", "performance.trainium.launch_time")
    }
    for path, (value, _) in moved_inputs.items():
        fresh.type(path, value)
    fresh.settle()
    program, *words = shlex.split(fresh.command)
    assert program == "tco"
    rows = {row["scenario"]: row["metrics"] for row in document(*words)["rows"]}
    assert refuse_difference(fresh.metrics(), rows) > 10


def test_the_keyboard_alone_moves_an_input(fresh):
    page = fresh.page
    before = fresh.metrics()[PAIR[0]]["tco_usd_per_chip_hour"]
    page.focus("#who")
    for _ in range(8):
        page.keyboard.press("Tab")
    assert page.evaluate("() => [document.activeElement.type, document.activeElement.id]") == [
        "range",
        "move-terms.life",
    ]
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    fresh.settle()
    life = page.evaluate("() => moved.get('terms.life')")
    assert life > 5
    assert fresh.metrics()[PAIR[0]]["tco_usd_per_chip_hour"] == pytest.approx(
        program_metrics({"terms.life": (life, "year")})[PAIR[0]]["tco_usd_per_chip_hour"], rel=1e-9
    )
    assert fresh.metrics()[PAIR[0]]["tco_usd_per_chip_hour"] < before
    assert "the order is as in the report" in page.inner_text("#whatif-verdict").lower()
    page.focus("#search")
    page.keyboard.type("hbm bandwidth trn3")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "move-parts.trn3.hbm_bandwidth"
    assert page.locator("#sliders .slider").count() >= 13


def test_search_finds_every_input_but_those_of_the_structure(fresh):
    controls, open_count = fresh.page.evaluate(
        "() => [DATA.controls.map(one => one.path), DATA.controls.filter(one => one.open).length]"
    )
    assert open_count == 13
    leaf_paths = {node.given.path for name in PAIR for node in leaves(name)}
    assert len(controls) == len(set(controls))
    readings = {
        path: reading for name in PAIR for path, reading in result(name).structure.readings.items()
    }
    assert leaf_paths - set(controls) == {
        path for path in leaf_paths if path in readings and readings[path] is not True
    }
    assert {"memory_reserve", "cache_share", "interactivity", "rack_kw_max"} <= {
        path.rpartition(".")[2] for path in set(controls) - leaf_paths
    }
    for words in (
        "chip price",
        "trainium price",
        "depreciation",
        "interest",
        "lifetime",
        "context",
        "electricity",
        "utilisation",
    ):
        fresh.page.fill("#search", words)
        assert fresh.page.query_selector("#found button"), words
    fresh.page.fill("#search", "no such input at all")
    assert fresh.page.inner_text("#found-count") == "no such input"
    fresh.page.fill("#search", "")


def leaves(name):
    """Return the inputs that the cost of a token and the price of a chip rest on."""
    nodes = result(name).nodes
    return [
        node
        for node in nodes_below(nodes["usd_per_million_output_tokens"], nodes["capex_usd_per_chip"])
        if node.given is not None
    ]


def test_page_has_no_errors_and_makes_no_requests(wide, phone):
    for opened_page in (wide, phone):
        assert opened_page.complaints == []
        assert {
            request.partition("#")[0]
            for request in opened_page.requests
            if not request.startswith("data:")
        } == {opened_page.url}


def test_no_table_scrolls_sideways_in_a_window_of_360_pixels(running, report):
    small = Opened(running, report, {"width": 360, "height": 740})
    wide_tables = """() => {
        document.querySelectorAll("details").forEach(block => block.open = true);
        return [...document.querySelectorAll(".scroll")]
            .filter(box => box.scrollWidth > box.clientWidth)
            .map(box => box.getAttribute("aria-label"));
    }"""
    assert small.page.evaluate(wide_tables) == []
    cells = small.page.locator(".stacked td[data-head]")
    head = cells.first.evaluate("cell => getComputedStyle(cell, '::before').content")
    assert head == f'"{cells.first.get_attribute("data-head")}"'
    assert small.complaints == []


def test_nothing_is_wider_than_the_phone(phone):
    assert phone.page.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"]
    assert phone.page.locator("svg:visible").count() >= 8


@pytest.mark.parametrize(
    ("size", "scheme"), [(WIDE, "light"), (PHONE, "dark")], ids=["wide", "phone"]
)
def test_page_has_no_accessibility_violation(running, report, size, scheme):
    """Figures are judged by their titles and descriptions.

    Their marks, thousands of them, are decoration to whoever does not see them.
    """
    from axe_playwright_python.sync_playwright import Axe

    opened_page = Opened(running, report, size, color_scheme=scheme)
    opened_page.page.evaluate(
        "() => document.querySelectorAll('svg > :not(title, desc)').forEach(mark => mark.remove())"
    )
    # tables are alike
    opened_page.page.evaluate(
        "() => document.querySelectorAll('details').forEach((one, at) => { one.open = at < 1; })"
    )
    opened_page.type("site.pue", 1.3)
    opened_page.settle()
    axe_report = Axe().run(opened_page.page, options={"resultTypes": ["violations"]})
    assert [
        (violation["id"], violation["impact"], violation["nodes"][0]["html"][:120])
        for violation in axe_report.response["violations"]
    ] == []
    opened_page.page.close()


def test_paper_cuts_no_table(wide):
    page = wide.page
    page.emulate_media(media="print")
    page.set_viewport_size(PAPER)
    page.evaluate("() => document.querySelectorAll('details').forEach(one => { one.open = true; })")
    wider = page.evaluate(
        """() => [...document.querySelectorAll("table, svg")]
        .filter(element => element.getBoundingClientRect().width > 0)
        .filter(element => element.getBoundingClientRect().right
          > document.body.getBoundingClientRect().right + 1)
        .map(element => element.outerHTML.slice(0, 300))"""
    )
    assert wider == []
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") in (
        "rgb(255, 255, 255)",
        "rgba(0, 0, 0, 0)",
    )
    assert not page.locator("input[type=range]").first.is_visible()
    page.evaluate(
        "() => document.querySelectorAll('details').forEach(one => { one.open = false; })"
    )
    page.emulate_media(media="screen")
    page.set_viewport_size(WIDE)


def test_names_and_notes_are_words_and_nothing_else(running, folder):
    """A title, a note and a name that would run something if they were anything but words."""
    attack = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'
    path = folder / "attack.toml"
    path.write_text(
        f"title = '''{attack}'''\nsystem = \"gb200-nvl72\"\nsite = \"us-hyperscale\"\nterms = "
        '"hyperscaler-2025-12"\n'
        'workload = "deepseek-v3-8k-1k"\ncluster = "tor-100g-16k"\n',
        encoding="utf-8",
    )
    out = folder / "attack.html"
    done = tco("report", path, "-o", out)
    assert done.exit_code == 0, done.stderr
    text = out.read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "<img" not in text
    opened_page = Opened(running, out, WIDE)
    assert attack in opened_page.page.text_content("main")
    assert opened_page.complaints == []
    assert len(opened_page.requests) <= 2  # itself, and the icon it holds
    opened_page.page.close()


def test_rack_without_a_plan_has_no_cost_and_a_reason(fresh):
    """As `--set` does: another plan fits on a third of the memory, none on a hundredth."""
    cell = "#whatif-table td[data-scenario='1'][data-metric='usd_per_million_output_tokens']"
    for capacity, possible in ((60, True), (2, False)):
        fresh.page.evaluate(f"move('parts.gb200-gpu.hbm_capacity', {capacity})")
        fresh.settle()
        expected = costs_with({"parts.gb200-gpu.hbm_capacity": f"{capacity} GB"}, PAIR[1:])[0]
        assert (expected is not None) is possible
        cell_value = fresh.page.get_attribute(cell, "data-value")
        assert (
            cell_value == ""
            if expected is None
            else float(cell_value) == pytest.approx(expected, rel=1e-7)
        )
    assert "gb200-nvl72: the leanest plan needs" in fresh.page.inner_text("#whatif-verdict")
    assert fresh.page.inner_text(cell).startswith("–")
