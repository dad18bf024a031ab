"""Each function of the page alone: against the package, and against arithmetic by hand."""

import json
import math
import random
from itertools import pairwise
from urllib.parse import urlencode

import pytest

from course_tools.estimate.chips import find_chip
from course_tools.estimate.known_networks import counted_memory
from course_tools.estimate.memory.memory_model import MemoryLine, capacity_bytes, largest_batch
from course_tools.estimate.words import amounts, number, span

pytestmark = pytest.mark.browser

GB = 10**9


def value(page, expression: str):
    """Return what an expression in JavaScript gives inside the page."""
    return page.evaluate("text => page.say(text)", expression)


def row(**changes) -> str:
    """Return a row of the page's answer: an hour for a dollar on a T4."""
    colab = {"name": "Colab", "devices": ["T4"], "count": 1, "session_hours": 12}
    usual = {"device": "T4", "offer": None, "count": 1, "own": False, "precision": "fp16"}
    usual |= {"batch": 8, "step": 1, "seconds": [3000, 3600, 4000], "cost": [0.8, 1, 1.2]}
    usual |= {"needed": 5 * GB, "capacity": 10 * GB, "margin": 0.1, "fits": True}
    usual |= {"limit": "memory", "tokens": None, "flops": 1e18, "checked": True}
    usual |= {"kind": -1 if changes.get("mine") else 0, "seller": "Vast, on demand"}
    if "offer" in changes:
        usual |= {"cost": [0, 0, 0]}
        changes["offer"] = colab | {"week_hours": None} | changes["offer"]
    return json.dumps(usual | changes)


def cells(**changes) -> str:
    return f"table([{row(**changes)}])[0]"


def sessions(hours: float, **offer) -> str:
    seconds = [1800 * hours, 2400 * hours, 3600 * hours]
    return f"onFreeNotebooks([{row(offer=offer, seconds=seconds)}])"


def in_address(**fields) -> str:
    return f"fromAddress({json.dumps(urlencode(fields))}, known)"


KAGGLE = {"name": "Kaggle", "week_hours": 30}
LATE = {"seconds": [3000, 3600, 3601]}
ANSWERS = in_address(model="GPT-2", task="inference", prompt=768, devices="T4")
SOON = in_address(model="Mistral 7B", task="inference", batch=16, deadline=2)
LONGER = in_address(model="GPT-2", task="inference", prompt=769)
ORDER = [row(device="no", fits=False), row(device="late", seconds=[1, 2, 9e5])]
ORDER += [row(device="dear", cost=[5, 6, 7]), row(device="cheap"), row(device="quick")]
ORDER[4] = row(device="quick", seconds=[2000, 3000, 4000], cost=[0.8, 1, 1.2])
ORDER += [row(device="free", offer={}, fits=False), row(device="Colab", offer=KAGGLE)]
ORDER.append(row(device="spare", offer={}))


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        # numbers.js
        ("readNumber('1', {least: 1}).value", 1),
        ("readNumber('0.9', {least: 1}).problem", "This has to be 1 or more."),
        ("readNumber('6', {most: 6}).value", 6),
        ("readNumber('7', {most: 6}).problem", "This has to be 6 or less."),
        ("readNumber('2.5', {whole: true}).problem", "This has to be a whole number."),
        ("readNumber('1e15').value", 1e15),
        ("readNumber('1.1e15').problem", "This has to be 1.0e+15 or less."),
        ("readNumber('-2', {least: -5}).value", -2),
        ("['3k', '3K', '2M', '2G', '5e-3', '1.500e2', '1,5', '10 000', '0.500', '1.234.567',"
         "'1,234,567.8', '1.500.000,5', '1234,567'].map(one => readNumber(one).value)",
         [3000, 3000, 2e6, 2e9, 0.005, 150, 1.5, 10_000, 0.5, 1_234_567,
          1_234_567.8, 1_500_000.5, 1234.567]),
        ("['1,23,456', ',123,456', '1.2,3.4', '1234,567,890'].map(one => readNumber(one).problem)",
         ["This is not a number."] * 4),
        ("['1.250', '1,250', ' ', '1e999', '-1'].map(one => readNumber(one).problem)",
         [*["Do you mean 1250 or 1.25? Please write it like that."] * 2, "A number is missing.",
          "This number is too large.", "This has to be 0 or more."]),
        ("readPrice('$1.500').value", 1.5),
        ("readPrice('1000000').value", 1e6),
        ("readPrice('1000001').problem", "This has to be 1,000,000 or less."),
        ("readPrice('-1').problem", "This has to be 0 or more."),
        ("[0, 0.00049, 0.001, 0.352, 7.23, 33.4, 1240.2, 2e15].map(say)",
         ["0", "4.9e-4", "0.001", "0.35", "7.2", "33", "1,240", "2.0e+15"]),
        ("[1, 119, 120, 7199, 7200, 172799, 172800, 729 * 86400, 730 * 86400, 3e-6].map(sayTime)",
         ["1,000 ms", "119 s", "2 min", "120 min", "2 h", "48 h", "2 days", "729 days", "2 years",
          "3 µs"]),
        ("[50000, 999999, 1281167, 2.5e9, 3e12].map(sayCount)",
         ["50,000", "999,999", "1.28 million", "2.5 billion", "3 trillion"]),
        ("[16e9, 1.24e9].map(sayBytes)", ["16 GB", "1.2 GB"]),
        # answer.js
        (cells(), ["T4", "50 to 67 minutes", "$0.80 to $1.20", "yes: 5 GB of 10 GB", "bandwidth"]),
        (cells(mine=True) + "[0]", "T4, yours"),
        (cells(mine=True) + "[2]", "no rent"),
        (cells(fits=False, needed=12 * GB),
         ["T4", "(50 to 67 minutes)", "($0.80 to $1.20)", "no: needs 12 GB, has 10 GB",
          "bandwidth"]),
        (cells(fits=False, needed=9.5 * GB) + "[3]", "no: about 9.5 GB, too near its 10 GB"),
        (cells(fits=False, needed=10 * GB) + "[3]", "no: about 10 GB, too near its 10 GB"),
        (cells(kind=1, seller="Salad, homes") + "[2]", "$0.80 to $1.20, homes"),
        (cells(needed=9 * GB) + "[3]", "yes: 9 GB of 10 GB"),
        (cells(needed=9.1 * GB) + "[3]", "just: 9.1 GB of 10 GB"),
        (cells(needed=None) + "[3]", "not known"),
        (f"doubts({row()}, false)", ""),
        (f"doubts({row(checked=False)}, false)",
         "Unchecked on the T4: no published measurement of such work on it was compared."),
        (f"doubts({row(needed=9.1 * GB)}, false)", "It only just fits: 9.1 GB of 10 GB."),
        (f"doubts({row(needed=9.1 * GB)}, true)", ""),
        (cells(own=True, needed=None, cost=None) + ".slice(2)",
         ["free", "measured", "measured by you"]),
        (cells(checked=False) + "[4]", "bandwidth, unchecked"),
        (cells(cost=None, tokens=[9.4, 1234.4]) + ".slice(2)",
         ["no price", "yes: 5 GB of 10 GB", "9.4 to 1,234"]),
        (cells(count=2, offer=KAGGLE) + ".slice(0, 3)",
         ["2 x T4 on Kaggle", "50 to 67 minutes", "free"]),
        (f"header([{row()}])[4]", "Limited by"),
        (f"header([{row(tokens=[1, 2])}])[4]", "Writes tokens per second"),
        (f"toMarkdown([{row(device='a|b')}], '<b>', 'x#y').split('\\n').slice(0, 5)",
         [" b ", "", "| Device | Time | Cost | Fits | Limited by |",
          "| --- | --- | --- | --- | --- |",
          "| a b | 50 to 67 minutes | $0.80 to $1.20 | yes: 5 GB of 10 GB | bandwidth |"]),
        (f"stateOf({row(seconds=[3000, 3600, 3600])}, 1)", "fine"),
        (f"stateOf({row(**LATE)}, 1)", "late"),
        (f"stateOf({row(**LATE)}, null)", "fine"),
        (f"stateOf({row(fits=False)}, null)", "too-large"),
        (sessions(12), ""),
        (sessions(13), "What is free: 1 to 2 sessions of Colab. "
         "Save a checkpoint before a session ends."),
        (sessions(30, **KAGGLE), ""),
        (sessions(61, **KAGGLE), "What is free: 2 to 3 weeks of Kaggle's quota. "
         "Save a checkpoint before a session ends."),
        (sessions(60)[:-1] + ", 30)", "What is free: 3 to 5 sessions of Colab (may be late). "
         "Save a checkpoint before a session ends."),
        (sessions(60)[:-1] + ", 29)", "What is free: 3 to 5 sessions of Colab (too late). "
         "Save a checkpoint before a session ends."),
        (f"table([{row(**LATE)}], 1)[0][1]", "50 to 60 minutes, may be late"),
        (f"unlike([{row()}, {row(device='A', kind=3)}, {row(device='B', kind=-1)}, "
         f"{row(device='C', kind=3, fits=False)}]).map(one => one.device)", ["A"]),
        (f"inOrder([{', '.join(ORDER)}], 2).map(one => one.device)",
         ["Colab", "spare", "quick", "cheap", "dear", "late", "free", "no"]),
        # one's own card, which Python does not know
        (f"advise([{row(device='A', mine=True, cost=[0, 0, 0])}], 2, [{row(offer={})}])",
         "Use your A: 50 to 67 minutes, no rent."),
        (f"advise([{row(device='A', mine=True, cost=[0, 0, 0])}], 1, [{row(offer=KAGGLE)}])",
         "None surely meets your hour. Your A may: 50 to 67 minutes, no rent."),
        (f"advise([{row(mine=True, **LATE)}], 1, [{row(offer=KAGGLE, seconds=[999, 2000, 3000])}])",
         "Free: a T4 on Kaggle takes 17 to 50 minutes, in one session."),
        (f"advise([{row(device='A', mine=True, cost=[0, 0, 0], seconds=[9000, 1e4, 2e4])},"
         f"{row(device='B', seconds=[300, 400, 500])}], null, [])",
         "Use your A: 2.5 to 5.6 hours, no rent. The B would take 5 to 8.3 minutes, "
         "$0.80 to $1.20 (Vast, on demand)."),
        (f"advise([{row(device='A', mine=True, cost=[0, 0, 0], **LATE)},"
         f"{row(seconds=[700, 700, 710])}], 1, [])",
         "Rent the T4: 12 minutes, $0.80 to $1.20 (Vast, on demand). Your A costs no rent but "
         "may miss your hour."),
        (f"advise([{row(fits=False)}, {row(fits=False, needed=GB)}], null, [])",
         "It fits none of these cards: a step needs about 1 GB."),
        ("advise([], null, [])", "Choose at least one card."),
        ("jobWords(defaultQuestion(), 'images')",
         "resnet50 (224), training, 90 epochs of 1.28 million samples, batch 256:"),
        ("jobWords({...defaultQuestion('tuning'), batch: null, epochs: 1, samples: 1}, 'tuning')",
         "resnet50 (224), training LoRA, 1 sample of 2,048 tokens, batch as many as fit:"),
        ("jobWords({...defaultQuestion('answers'), model: 'own'}, 'answers')",
         "Your own model in 16 bits with vLLM, 10,000 requests of 512 tokens with answers of "
         "256 tokens, 1 at once:"),
        # question.js and pasted.js
        ("kindOfJob(false, 'inference') + kindOfJob(true, 'inference') + kindOfJob(true, null)",
         "imagesanswerstuning"),
        ("fromAddress('x'.repeat(60000), known).problems", []),
        ("fromAddress('x'.repeat(60001), known).problems.length", 1),
        (in_address(chip="Mine,1,2,3") + ".question.chip",
         {"name": "Mine", "peak": 1, "bandwidth": 2, "memory": 3}),
        (f"answerRows({in_address(devices='', chip='A,1,2,3')}.question)[0].capacity", 3 * 2**30),
        (in_address(chip="Mine,0,2,3") + ".question.chip", None),
        (in_address(chip="Mine,1,2,1e9") + ".question.chip", None),
        (in_address(chip="Mine,1,2,3,4") + ".question.chip", None),
        (in_address(price="T4:999999") + ".question.prices", {"T4": 999_999}),
        (in_address(price="T4:none") + ".question.prices", {"T4": None}),
        ("['1e6', '-1', '', 'x'].map(one => fromAddress(`price=T4:${one}`, known).problems.length)",
         [1, 1, 1, 1]),
        (in_address(devices="") + ".question.devices", []),
        (in_address(devices="L4,L4,?") + ".question.devices", ["L4"]),
        (in_address(devices="L4", mine="T4,L4", free="no") + ".question.mine", ["L4"]),
        ("['A 100', 'x'.repeat(40), 'x'.repeat(41), '', 'a,b', 'constructor'].map(isName)",
         [True, True, False, False, False, False]),
        ("readOwn('[' + ' '.repeat(200000)).problem", "This text is too long."),
        ("readOwn('[' + ' '.repeat(199999)).problem.slice(0, 23)", "This is not the whole J"),
        # search.js
        ("searchNames('abcdx', [...'123456789'].map(one => `abc${one}`)).length", 5),
        ("searchNames('abcdx', ['abvw', 'abcvw']).map(one => one.name)", ["abcvw"]),
        ("searchNames('vit', ['vitamin', 'vit_large']).map(one => one.name)",
         ["vit_large", "vitamin"]),
        ("['bert-base-uncased', 'bert'].map(one => searchNames(one, ['BERT base'])[0].exact)",
         [True, False]),
        # offers.js and model.js
        ("howOf({...defaultQuestion(), bits: '4', batch: 2, length: 1024}, defaultQuestion())",
         "4-bit weights, batch 2, samples of 1,024 tokens"),
        ("withoutRent({...defaultQuestion(), mine: ['T4']}).prices", {"T4": 0}),
        ("howOf({...defaultQuestion(), tuning: '4-bit'}, defaultQuestion())",
         "LoRA on 4-bit weights"),
        (f"(one => offerFor(one, rowsOf(one), freeOf(one)).words)({SOON}.question).slice(-10)",
         ", too late"),
        (f"problemOfTexts({ANSWERS}.question)", None),
        (f"problemOfTexts({LONGER}.question)",
         {"field": "prompt", "problem": "GPT-2 takes 1,024 tokens at most, its answer included."}),
        (f"problemOfTexts({in_address(model='GPT-2', length=1024)}.question)", None),
        (f"problemOfTexts({in_address(model='GPT-2', length=1025)}.question)",
         {"field": "length", "problem": "GPT-2 takes 1,024 tokens at most."}),
        (f"memoryOf({ANSWERS}.question, {row(batch=8, count=2)}).map(one => one.name)",
         ["weights", "keys and values of 4 requests", "PyTorch, CUDA and gaps"]),
        (f"memoryOf({in_address(model='GPT-2', length=64)}.question, {row(batch=1)}).at(-2).name",
         "activations of one sample"),
        (f"memoryOf({in_address(model='Qwen3 8B', tuning='full')}.question, {row(batch=1)})"
         ".map(one => one.name)",  # its update needs more than its activations, which have gone
         ["weights", "gradients", "optimizer", "PyTorch, CUDA and gaps"]),
        (f"memoryOf({ANSWERS}.question, {row(own=True)})", []),
        (f"leftOut({in_address(devices='T4,RTX 4090', precision='bf16', count=2)}.question)",
         ["The T4 does not compute in bf16."]),
        (f"leftOut({in_address(devices='Apple M2,T4', count=2)}.question)",
         ["The Apple M2 has no link to a second one."]),
        (f"leftOut({in_address(devices='Apple M2', count=2, task='inference')}.question)", []),
        (f"problemOf({in_address(precision='fp32')}.question)",
         {"field": "precision", "problem": "This model was counted in 16 bits only."}),
        (f"evidence({in_address(devices='T4')}.question, [{row()}]).slice(0, 2)",
         ["In 90 of 100 published measurements of such work, the truth lay within such an "
          "interval (T4).", "Reading data is not included."]),
        (f"evidence({ANSWERS}.question, [{row(checked=False)}]).slice(0, 2)",
         ["The intervals of these are assumed, not checked: T4.",
          "The card is taken to be busy all the time: idle hours cost as much."]),
        (f"thatFits({in_address(devices='RTX 3060', batch=500)}.question).question.batch", 128),
        (f"answerRows({in_address(devices='T4', samples=10, batch=20, epochs=1)}.question)"
         ".map(one => one.seconds[1] / one.step)", [1]),
        (f"answerRows({in_address(cpu=2, samples=640, epochs=3, batch=64, devices='')}.question)"
         ".map(one => one.seconds)", [[60, 60, 60]]),
        (f"lighterForms({ANSWERS}.question)", [{"bits": "16"}, {"bits": "8"}, {"bits": "4"}]),
        (f"lighterForms({in_address(model='GPT-2', tuning='lora')}.question)",
         [{"tuning": "lora"}, {"tuning": "4-bit"}]),
    ],
)  # fmt: skip
def test_each_function_gives_what_it_says(inside, expression, wanted):
    assert value(inside, expression) == wanted


def test_quantities_are_written_as_in_the_package(inside):
    """Odd numbers, since Python rounds an exact half to the even digit, and a browser up."""
    draw = random.Random(5)
    low = [10 ** draw.uniform(-4, 9) for _ in range(600)]
    pairs = [[one, one * draw.choice([1.0, 1.013, 1.7, 3.1, 9.3])] for one in low]
    written = "pairs => pairs.map(([a, b]) => [sayTimes(a, b), sayMoney(a, b), digits(a)])"
    found = value(inside, f"({written})({json.dumps(pairs)})")
    for (one, other), said in zip(pairs, found, strict=True):
        hours = one / 3600, other / 3600
        assert said == [span(hours), amounts((one, other), "$"), number(one)], (one, other)
    assert value(inside, "sayMoney(0, 0)") == "free"


TOKENS = dict.fromkeys(("length", "prompt", "generated"), (1, 10**7))
LIMITS = TOKENS | {"batch": (1, 10**7), "epochs": (1, 10**6), "count": (1, 10**5)}
LIMITS |= {"deadline": (0.001, 10**7), "cpu": (1e-9, 10**9), "samples": (1, 10**15)}


@pytest.mark.parametrize(("name", "ends"), LIMITS.items())
def test_an_address_and_a_field_take_the_same_numbers(inside, name, ends):
    least, most = ends
    wanted = {least: True, most: True, least * 0.99: False, most * 1.01: False, 2: True}
    wanted[1.5] = name in ("deadline", "cpu")
    for amount, allowed in wanted.items():
        text = f"{amount:.12g}"
        assert value(inside, f"{in_address(**{name: text})}.problems.length === 0") == allowed
        if name != "samples":  # which a field has in several units
            read = value(inside, f"readNumber('{text}', FIELDS.{name})")
            assert ("value" in read) == allowed, read


STEP = {"batch": 1, "training": True, "precision": "bf16", "parameters": 1, "depthwise": 0}
STEP |= {"convolution": [1, 1, 1], "volume": [0, 0, 0], "other": [1, 1, 1], "attention": 0}
STEP |= {"recurrent": 0, "lines": [[1, 1]]}


@pytest.mark.parametrize(
    ("half", "changes"),
    [
        (True, [{}, {"precision": "fp16"}, {"lines": [[1, 1]] * 99}]),
        (False, [{"precision": "fp32"}, {"precision": "tf32"}]),
        (None, [{"batch": 0}, {"parameters": -1}, {"attention": 1e30}, {"other": [1, 1]}]),
        (None, [{"lines": [[1]]}, {"lines": [[1, 1]] * 100}, {"volume": None}]),
    ],
)
def test_a_pasted_step_is_whole_or_refused(inside, half, changes):
    for change in changes:
        read = value(inside, f"readOwn({json.dumps(json.dumps(STEP | change))})")
        assert read.get("own", {}).get("half") == half and ("own" in read) != ("problem" in read)


def test_a_question_comes_back_whole_from_its_address(inside):
    asked = {"model": "Qwen3 8B", "task": "inference", "tuning": "4-bit", "precision": "fp32"}
    asked |= {"own": None, "length": 3, "prompt": 4, "generated": 5, "bits": "8"}
    asked |= {"runtime": "llama.cpp", "batch": None, "samples": 6, "epochs": 7, "deadline": None}
    asked |= {
        "devices": ["L4", "T4"],
        "chip": {"name": "A", "peak": 1, "bandwidth": 2, "memory": 3},
    }
    asked |= {"count": 8, "provider": "Lambda", "prices": {"T4": 0.5, "L4": None, "A": 2}}
    asked |= {"mine": ["T4"], "free": False, "cpu": 0.25}
    address = f"toAddress({json.dumps(asked)}, defaultQuestion())"
    usual = value(inside, "defaultQuestion()")
    assert [name for name in usual if usual[name] == asked[name]] == ["own"]
    assert value(inside, f"fromAddress({address}, known)") == {"question": asked, "problems": []}
    assert value(inside, "toAddress(defaultQuestion(), defaultQuestion())") == ""


@pytest.mark.parametrize("device", ["T4", "RTX 3060", "H100 SXM"])
def test_the_largest_batch_is_the_packages_and_one_more_does_not_fit(inside, device):
    asked = {"batch": "largest", "devices": device}
    (found,) = value(inside, f"answerRows({in_address(**asked)}.question)")
    lines = [MemoryLine(*line) for line in counted_memory()["resnet50", 224, True]]
    wanted = largest_batch(lines, capacity_bytes(find_chip(device)))
    assert found["batch"] == pytest.approx(wanted, rel=2e-3)
    asked |= {"model": "Llama 3.2 1B", "tuning": "lora", "length": 64}
    (found,) = value(inside, f"answerRows({in_address(**asked)}.question)")
    for batch in (found["batch"], found["batch"] + 1):
        (one,) = value(inside, f"answerRows({in_address(**asked | {'batch': batch})}.question)")
        assert one["fits"] == (batch == found["batch"])


DRAWN = """(() => {
    const svg = document.createElementNS(SVG, "svg");
    draw(svg, ROWS, 5, 500);
    const of = (selector, ...names) => [...svg.querySelectorAll(selector)].map(
        one => [...names.map(name => Number(one.getAttribute(name))), one.textContent]);
    return { ticks: of(".tick", "x", "y"), lines: of(".row line", "x1", "y1", "x2", "y2"),
             marks: of(".row rect", "x", "y"), own: of(".row circle", "cx", "cy"),
             deadline: [of("line.deadline", "y1"), of(".deadline-text", "y")],
             crosses: of(".too-large .cross").length, late: of(".row.late text").length,
             best: of(".row.best.own text").map(([text]) => text) };
})()"""


def test_a_marker_stands_where_the_axes_say(inside):
    """The axes are read off again: two ticks give the scale of each, which is logarithmic."""
    rows = [row(seconds=[1800, 3600, 7200], cost=[0.5, 1, 2])]
    rows += [row(device="dear", seconds=[9000, 30_000, 90_000], cost=[10, 20, 50])]
    rows += [row(device="small", fits=False), row(device="mine", own=True, cost=None)]
    drawn = value(inside, DRAWN.replace("ROWS", f"[{', '.join(rows)}]"))
    units = {"s": 1, "min": 60, "h": 3600, "days": 86_400}
    money = {float(text[1:]): x for x, _, text in drawn["ticks"] if text[0] == "$"}
    times = {}
    for _, y, text in drawn["ticks"]:
        count, _, unit = text.partition(" ")
        if unit in units:
            times[float(count) * units[unit]] = y - 5
    assert len(money) > 2 and len(times) > 1
    assert all(after - before >= 46 for before, after in pairwise(sorted(money.values())))

    def at(ticks: dict[float, float], amount: float) -> float:
        (low, start), *_, (high, end) = sorted(ticks.items())
        return start + math.log(amount / low) / math.log(high / low) * (end - start)

    assert at(times, 7200) < at(times, 60) and at(money, 9) > at(money, 1)
    wanted = [at(money, 0.5), at(times, 1800), at(money, 2), at(times, 7200), ""]
    assert drawn["lines"][0] == [pytest.approx(one, abs=0.5) for one in wanted[:4]] + [""]
    centres = [[x + 6, y + 6] for x, y, _ in drawn["marks"]]
    for centre, (cost, seconds) in zip(centres, [(1, 3600), (20, 30_000)], strict=True):
        assert centre == pytest.approx([at(money, cost), at(times, seconds)], abs=0.5)
    ((x, y, _),) = drawn["own"]
    assert x < min(money.values()) - 30 and y == pytest.approx(at(times, 3600), abs=0.5)
    ((line, _),), ((above, words),) = drawn["deadline"]
    assert words == "deadline 5 h" and line == pytest.approx(at(times, 5 * 3600), abs=0.5)
    assert above < line and drawn["crosses"] == 1 and drawn["late"] == 1
    assert drawn["best"] == ["mine"]
    assert [text for *_, text in drawn["ticks"]][-1] == "free"
