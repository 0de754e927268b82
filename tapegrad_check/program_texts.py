"""Is a language model this machine with memory? Its heads and cases are read, and compared with a page.

A net of target `decoder` for a program does not depend on the program, which stands in the prompt; so what is
proved holds for every program on that machine, with every input. The pages are `subleq_records` and, for
RISC-V, none yet: of such a net it is proved what its heads and cases are, but not that they are the
instruction set.
"""

from typing import Any

from tapegrad_check.folder import OWN_TABLE, Arrays, Checked, require
from tapegrad_check.pages import compare, digits_for
from tapegrad_check.sources import MOST_BYTES, Model, Program, whole
from tapegrad_check.subleq_records import TOKENS, SubleqPage
from tapegrad_check.token_nets import TokenNet

KINDS = ("subleq", "rv32")
MEAN = 2.0**-20
RV32_TOKENS = 560
WORDS = ("this", "last", "write", "block")
NAMES = ("writes", "target", "kind of the record")
"""What heads of the first layer are called; those in the first line have numbers."""


def check(config: dict[str, Any], arrays: Arrays, claims: dict[str, Any], source: Model | None) -> Checked:
    """The statements that hold; `CheckError` says which does not."""
    data = config["machine"]
    ram = whole(data["ram"], "the size of memory", 1, MOST_BYTES)
    counted = whole(data["counted"], "the digits that count the input", 1, 6)
    if source is not None:
        require(isinstance(source, Program), "the source is no program")
        assert isinstance(source, Program)
        kind = {"subleq": "subleq", "rv32im": "rv32"}[source.kind]
        require((kind, source.ram) == (data["kind"], ram), "the machine is not that of the source")
    if data["kind"] == "subleq":
        require(data.keys() == {"kind", "ram", "width", "counted"}, "the machine has other entries")
        width = whole(data["width"], "the width of a word", 8, 32)
        require(width in (8, 16, 32) and ram % (width // 8) == 0, "the memory does not consist of words")
        require(ram * 8 // width < 1 << width - 1, "a word cannot be every address")
        require(
            not isinstance(source, Program) or source.width == width, "the words are not those of the source"
        )
        page = SubleqPage(width, ram * 8 // width, counted)
        net = _net(config, arrays, len(page.slots), TOKENS)
        tried = compare(net, page)
        _claims(claims, net)
        proved = (
            f"each of the {net.record} tokens of a record is what the page of SUBLEQ says, for all that it "
            f"depends on ({tried:,} combinations of bits); its logit is above all others by 1"
        )
        reads = f"bytes of input are counted up to {16**counted - 1:,}"
        return Checked([*_statements(net), proved, reads])
    require(data.keys() == {"kind", "ram", "counted"}, "the machine has other entries")
    record = 131 + 3 * digits_for(ram) + counted
    net = _net(config, arrays, record, RV32_TOKENS)
    _claims(claims, net)
    return Checked(
        [*_statements(net), "there is no page of RISC-V yet that they were compared with"], OWN_TABLE
    )


def _net(config: dict[str, Any], arrays: Arrays, record: int, count: int) -> TokenNet:
    net = TokenNet(config, arrays, record, count)
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
