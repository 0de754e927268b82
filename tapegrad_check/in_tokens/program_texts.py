"""Is a language model this machine with memory? Its heads and cases are read, and compared with a page.

A net of target `decoder` for a program does not depend on the program, which stands in the prompt; so what is
proved holds for every program on that machine, with every input. The pages are `subleq_records` and
`rv32_records`; that the latter is RV32IM is proved in `rv32_proof`.
"""

from collections.abc import Mapping
from typing import Any

from tapegrad_check.fields import whole
from tapegrad_check.folder import Checked, NotProved, require
from tapegrad_check.graph import Graph
from tapegrad_check.in_tokens import rv32_proof, rv32_tokens, subleq_records
from tapegrad_check.in_tokens.pages import Page, compare
from tapegrad_check.in_tokens.rv32_records import Rv32Page
from tapegrad_check.in_tokens.subleq_records import SubleqPage
from tapegrad_check.in_tokens.token_nets import TokenNet
from tapegrad_check.in_tokens.words import rv32_words, subleq_words
from tapegrad_check.instructions.rv32 import PAGE
from tapegrad_check.sources import MOST_BYTES, Model, Program

NAMES_OF = {"subleq": "SUBLEQ", "rv32": "RISC-V"}
KINDS = tuple(NAMES_OF)
MEAN = 2.0**-20
WORDS = ("this", "last", "write", "block")
NAMES = ("writes", "target", "kind of the record")
"""What heads of the first layer are called; those in the first line have numbers."""


def check(config: dict[str, Any], claims: dict[str, Any], source: Model | None, graph: Graph) -> Checked:
    """The statements that hold; `CheckError` says which does not."""
    data = config["machine"]
    ram = whole(data["ram"], "the size of memory", 1, MOST_BYTES)
    counted = whole(data["counted"], "the digits that count the input", 1, 6)
    if source is not None:
        require(isinstance(source, Program), "the source is no program")
        assert isinstance(source, Program)
        kind = {"subleq": "subleq", "rv32im": "rv32"}[source.kind]
        require((kind, source.ram) == (data["kind"], ram), "the machine is not that of the source")
    page, count, proved = (_subleq if data["kind"] == "subleq" else _rv32)(data, ram, counted, source)
    net = _net(config, graph, len(page.slots), count)
    words = subleq_words() if data["kind"] == "subleq" else rv32_words()
    require(list(net.words) == words, "tokens have other words")
    tried = compare(net, page)
    _claims(claims, net)
    told = (
        f"each of the {net.record} tokens of a record is what the page of {NAMES_OF[data['kind']]} says, for "
        f"all that it depends on ({tried:,} combinations of bits); its logit is above all others by 1"
    )
    reads = f"bytes of input are counted up to {16**counted - 1:,}"
    return Checked([*_statements(net), told, *proved, reads])


def _subleq(
    data: Mapping[str, Any], ram: int, counted: int, source: Model | None
) -> tuple[Page, int, list[str]]:
    """The page, the number of tokens, and what else was proved. Of SUBLEQ the page is the definition."""
    require(data.keys() == {"kind", "ram", "width", "counted"}, "the machine has other entries")
    width = whole(data["width"], "the width of a word", 8, 32)
    require(width in (8, 16, 32) and ram % (width // 8) == 0, "the memory does not consist of words")
    require(ram * 8 // width < 1 << width - 1, "a word cannot be every address")
    require(not isinstance(source, Program) or source.width == width, "the words are not those of the source")
    return SubleqPage(width, ram * 8 // width, counted), subleq_records.TOKENS, []


def _rv32(
    data: Mapping[str, Any], ram: int, counted: int, source: Model | None
) -> tuple[Page, int, list[str]]:
    require(data.keys() == {"kind", "ram", "counted"}, "the machine has other entries")
    require(ram % 4 == 0, "the memory does not consist of words")
    if isinstance(source, Program) and source.entry % 4:
        raise NotProved("the program starts at an address that is no multiple of 4")
    count = rv32_proof.prove(ram, counted)
    proved = (
        f"records by this page do what the {len(PAGE)} instructions of RV32IM do, one by one, and all other "
        f"words are illegal: {count} cases, which are all"
    )
    rounds = (
        "in multiplication and division that is proved of each round, and that 32 of them make the product "
        "or the quotient"
    )
    return Rv32Page(ram, counted), rv32_tokens.TOKENS, [proved, rounds]


def _net(config: dict[str, Any], graph: Graph, record: int, count: int) -> TokenNet:
    net = TokenNet(config, graph, record, count)
    for head, gather in net.gathers.items():
        word, _, number = net.names[head].partition(" ")
        numbered = word in WORDS and number.isascii() and number.isdecimal() and str(int(number)) == number
        require(numbered or net.names[head] in NAMES, "a head has another name")
        require(gather.before == (word == "last"), "a head looks at another record than its name says")
    return net


def _statements(net: TokenNet) -> list[str]:
    return [
        f"the {net.count:,} tokens have the bits of their numbers",
        f"{len(net.gathers)} heads gather tokens of this record of {net.record}, or of the last",
        f"{len(net.recalls)} heads find the latest record that fits, in {len(net.digits)} round(s); "
        f"scores are at most {net.largest():,}, and those that differ, differ by 1, or by 1/2 where layer "
        "norms find means up to 2^-20",
        f"softmax strays by at most {net.stray:.3g}, and what is copied is rounded to the bit itself",
        f"the {len(net.cases):,} cases of the last layer add up to the number of the next token; the horizon "
        f"is {net.horizon:,} tokens",
    ]


def _claims(claims: dict[str, Any], net: TokenNet) -> None:
    found = {
        "dtype": "float32",
        "tokens": net.horizon,
        "record": net.record,
        "layers": 1 + len(net.digits),
        "largest_score": float(net.largest()),
        "score_gap": 0.5,
        "mean_error": MEAN,
        "temperature": net.beta,
        "softmax_error": net.stray,
        "logit_gap": 1.0,
    }
    require(claims == found, "the certificate claims something else than what holds")
