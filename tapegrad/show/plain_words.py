"""What a page says to a reader who has not read the papers: what there is to see, what one step is, why the
curve goes as it does, what the colours mean; and, for experts, where the statement is."""

from dataclasses import dataclass

from tapegrad._compile import Compiled

SEEN = "What am I looking at?"
STEP = "What is one step?"
LOSS = "Why does the loss rise and fall?"
CURVE = "What is the curve?"
COLOURS = "What do the colours mean?"

WELPER = "https://arxiv.org/abs/2007.13664"
ABBE_SANDON = "https://arxiv.org/abs/2001.02992"
WEI = "https://arxiv.org/abs/2107.13163"
GOEL = "https://arxiv.org/abs/2209.00735"
RASP = "https://arxiv.org/abs/2106.06981"


@dataclass(frozen=True)
class PlainWords:
    """One or two sentences to begin with, questions with their answers, and the address of the paper."""

    lead: str
    answers: tuple[tuple[str, str], ...]
    link: str


TAPE = PlainWords(
    "Ordinary gradient descent is training a neural network, and its loss is built so that every training "
    "step carries out one step of the Turing machine.",
    (
        (
            SEEN,
            "The machine as a diagram: boxes are its states, arrows its rules (0→1 R: reads 0, writes 1, "
            "moves right). The dots in the boxes are weights of the network. They sum to 1, and during the"
            " run one of them is 1: that one says which state the machine is in and what it reads. The "
            "tape and the place of the head are weights too, in the rows T and H. Of a machine with many "
            "states, those around the current one are drawn, and below them a strip with all of them.",
        ),
        (
            STEP,
            "One step of gradient descent. The gradient of the loss is computed with respect to all "
            "weights, and the weights are changed against it. Nothing else moves them. The gradient is "
            "steepest towards the dot of the next state, so that is where the weight goes.",
        ),
        (
            LOSS,
            "The loss is a landscape with a slope laid along the path of the machine. It is higher while "
            "the cell that the head moves to holds another symbol than the one it reads now, lower where "
            "they are equal. So it goes up and down while the machine runs. When the machine halts it "
            "drops for good, and that is how training knows that it is finished.",
        ),
        (
            COLOURS,
            "Orange is where the run stands now; dashed orange is where it goes next. In the tables, blue "
            "is positive and ochre negative; the stronger the colour, the larger the number.",
        ),
    ),
    WELPER,
)
SIMPLEX = PlainWords(
    "Ordinary gradient descent is training a neural network. Every configuration of the Turing machine "
    "(its state, head and tape) is a weight of its own, and the weight moves from one to the next.",
    (
        (
            SEEN,
            "A ring with one dot for each configuration that the machine can be in, in the order in which "
            "it meets them. Each dot is a weight; they sum to 1, and one of them is 1. In the middle, the "
            "machine itself: its states and its rules, or of many states those around the current one.",
        ),
        (
            STEP,
            "One step of gradient descent. The gradient is steepest towards the weight of the next "
            "configuration, so the 1 moves there.",
        ),
        (
            "Why does the loss fall?",
            "Each configuration lies a little lower than the one before it, so that the loss falls by the "
            "same amount at every step, until the machine halts. The first step only reads the labels of "
            "the training data.",
        ),
        (
            COLOURS,
            "Orange is where the run stands now; dashed orange is where it goes next. Blue dots have been "
            "visited already.",
        ),
    ),
    WELPER,
)
EMULATOR = PlainWords(
    "A neural network is trained by ordinary stochastic gradient descent, one sample at a time, and by "
    "that carries out an algorithm of your choice: a learner, a machine, a circuit or a program. Its memory "
    "is kept in the weights.",
    (
        (
            SEEN,
            "First comes the sample that training sees next, if it has bits. Then the memory of the "
            "algorithm: each cell is a weight of the network, negative for 1, positive for 0. Both feed a "
            "fixed network that computes what the algorithm would remember and answer. At the end are its "
            "answer, the label and the loss.",
        ),
        (
            STEP,
            "One step of SGD on one sample. The loss depends on many weights, but its gradient is large "
            "enough to matter for some memory cells only: the orange arrows. Each of these cells changes "
            "its sign, and that is the algorithm writing a bit to its memory.",
        ),
        (
            LOSS,
            "It is the squared difference between the network's output and the label. While the algorithm "
            "still learns, the network deliberately answers wrongly or not at all, because a loss of 0 "
            "would have no gradient, and nothing could be written.",
        ),
        (
            COLOURS,
            "Blue is a 0 in memory (a positive weight), ochre a 1 (a negative weight). Orange cells are "
            "those that the next step flips.",
        ),
    ),
    ABBE_SANDON,
)
RELU = PlainWords(
    "A neural network of simple units, each max(0, weighted sum), computes a Boolean circuit exactly. "
    "Nothing here was learned: the weights were written down by the compiler.",
    (
        (
            SEEN,
            "The network from its inputs to its outputs. Circles are units or gates, lines are weights. "
            "Blue circles hold a value other than 0; a line is coloured if something flows along it now. Of "
            "a large network there is only a column for each layer, as high as the layer has units.",
        ),
        (
            STEP,
            "One layer: all its units are computed from the layers before. At the end the outputs are "
            "read, -1 for the bit 0 and +1 for the bit 1.",
        ),
        (
            CURVE,
            "How many values are on after each layer.",
        ),
        (
            COLOURS,
            "Blue: on, or a positive weight that carries something. Ochre: a negative weight that carries "
            "something, or an output of -1. Pale: not computed yet.",
        ),
    ),
    WEI,
)
TRANSFORMER = PlainWords(
    "A transformer, the kind of network behind language models, runs a machine: each position that it "
    "writes is one step, and attention finds what it needs to remember.",
    (
        (
            SEEN,
            "Each box is a position of the transformer, and shows the state the machine was in and the "
            "symbol it read. The arrows show where the newest position looks: back to the step that last "
            "wrote the cell under the head, and to the input if there was none.",
        ),
        (
            STEP,
            "The transformer writes one more position. A machine has a tape that keeps what was written; a"
            " transformer has only its past positions. So at each step it searches them for the last time "
            "that the cell was written, bit by bit of the time: one layer for each bit.",
        ),
        (
            CURVE,
            "Where on the tape the head of the machine is.",
        ),
        (
            COLOURS,
            "Each kind of arrow has its colour, named below the drawing; the stronger, the more weight "
            "attention puts there. The newest position is orange.",
        ),
    ),
    WEI,
)
MEMORY = PlainWords(
    "A transformer, the kind of network behind language models, runs a circuit, a program or a machine. Each "
    "position that it writes is one cycle, instruction or step; attention finds the words that it needs.",
    (
        (
            SEEN,
            "In the middle is the position that is being computed, from what the step before has handed on "
            "to what this one hands on. A circle is a bit that ReLU units compute from one or two others: "
            "∧ ∨ ⊕ ¬ are and, or, exclusive or, not. Of a large network there is a bar for each layer. Above "
            "are positions written before, below tokens of the input. Arrows lead from heads of attention to "
            "what they copy.",
        ),
        (
            STEP,
            "The transformer computes one more position: an instruction of a program, a step of a machine or "
            "a cycle of a circuit. For each word of memory that it needs, attention looks for the last "
            "step that wrote there, or else to the input. A circuit without a clock takes one position; its "
            "layers are then shown one by one.",
        ),
        (CURVE, "How many of the bits computed so far in this position are 1."),
        (
            COLOURS,
            "Blue bits are 1, white ones are 0. Orange is what was computed just now. Orange arrows lead to "
            "earlier positions, blue ones to tokens.",
        ),
    ),
    WEI,
)
DECODER = PlainWords(
    "A language model writes a text, token by token, always taking the likeliest next one; and the text is"
    " the run of a machine. The prompt is its input.",
    (
        (
            SEEN,
            "The text so far, a box for each token. The arrows show which earlier tokens the model's "
            "attention looked at while it wrote the newest record, which is orange.",
        ),
        (
            STEP,
            "The model writes one more record: a few tokens that say what a step of the machine does.",
        ),
        (
            CURVE,
            "How many tokens there are.",
        ),
        (
            COLOURS,
            "The first heads of the model have a colour each, the others share one. The stronger an arrow, "
            "the more weight the head puts there.",
        ),
    ),
    WEI,
)
SEQUENCES = PlainWords(
    "A transformer reads a sequence once and answers at every position. Its program was written in RASP, a"
    " small language for what transformers can do, and compiled into weights.",
    (
        (
            SEEN,
            "The tokens are at the bottom, the answers on top, and a row for each layer that has attention"
            " heads in between. A line from one row to the next says that a position looked at another.",
        ),
        (
            STEP,
            "The whole sequence goes through all layers at once: there is a before and an after.",
        ),
        (
            CURVE,
            "How far the outputs are from exact values.",
        ),
        (
            COLOURS,
            "Each head has its colour. The stronger a line, the more weight the head puts there.",
        ),
    ),
    RASP,
)
RCNN = PlainWords(
    "One small filter, the same at every cell and in every layer, is applied again and again to a grid of "
    "numbers; and each time the machine on the grid takes one step.",
    (
        (
            SEEN,
            "The grid, as the network's numbers say it is: symbols in the cells, and the state of the "
            "machine where its head is. The blue frame is what the filter sees of the grid at one cell: "
            "three by three cells.",
        ),
        (
            STEP,
            "One layer of the network: the filter looks at every cell with its eight neighbours and "
            "computes the cell's new numbers. Wherever the head is not near, they stay as they are.",
        ),
        (
            CURVE,
            "How many cells hold a symbol other than the blank; where that number stays the same, the place "
            "of the head. Its name stands beside it.",
        ),
        (
            COLOURS,
            "Orange is the cell with the head. Dashed orange are cells that the next layer changes. Blue "
            "cells hold a symbol; the tables show the numbers, blue where positive and ochre where "
            "negative.",
        ),
    ),
    GOEL,
)

WORDS = {
    ("tape", ""): TAPE,
    ("simplex", ""): SIMPLEX,
    ("emulator", ""): EMULATOR,
    ("relu", ""): RELU,
    ("transformer", ""): TRANSFORMER,
    ("transformer", "memory"): MEMORY,
    ("decoder", ""): DECODER,
    ("decoder", "rasp"): SEQUENCES,
    ("rcnn", ""): RCNN,
}
"""By target and form."""


def plain_words(compiled: Compiled) -> PlainWords:
    """The words for a net; for a target without any, what it says of itself."""
    own = WORDS.get((compiled.target.name, compiled.net.form))
    return own or PlainWords(f"{compiled.target.summary}.".capitalize(), (), "")
