"""The code that everything trusts: the modules in which `tests/mutants.py` plants faults, and the tests that
belong to each.

Tests that are marked as slow are left out, and of the others those that take longest.
"""

CHECK = ["tests/check", "tests/test_saved.py", "tests/targets/test_relu_proof.py"]
VERIFY = [
    "tests/test_played_nets.py",
    "tests/test_verify_report.py",
    "tests/test_lockstep.py",
    "tests/test_compile_and_verify.py",
]
HEADS = ["tests/check/test_refusals_of_heads.py", "tests/check/test_proof_of_tapes.py"]
EXACT = "tests/targets/test_exactness.py"
REFUSALS = [f"tests/check/test_refusals{of}.py" for of in ("", "_of_circuits", "_of_learners")]
EMULATOR = [EXACT, *REFUSALS, *(f"tests/targets/emulator/test_{name}.py" for name in ("numbers", "saved"))]
PROGRAMS = ["tests/programs/test_step.py", "tests/programs/test_compiled.py"]
PAGE = ["tests/check/test_instructions.py"]
PROOFS = [
    f"tests/check/test_{name}.py" for name in ("ports", "instructions", "refusals_of_programs", "programs")
]
WALKS = [f"tests/check/test_{name}.py" for name in ("walks", "reaching")]
INSTRUCTION = ["tests/check/test_one_instruction.py"]
TOKENS = ["tests/check/test_rv32_records.py"]
BITS = ["tests/check/test_rv32_bits.py"]
DISGUISE = ["tests/interop/test_disguise.py"]
ON_TAPES = [f"tests/check/test_{name}.py" for name in ("programs_on_tapes", "refusals_of_tables")]
TEXTS = ["tests/targets/test_decoder.py", "tests/attention/test_tokens.py"]
VERDICTS = ["tests/check/test_verdicts.py"]
RECORDS = ["tests/check/test_refusals_of_records.py"]
RASP = [f"tests/rasp/test_{name}.py" for name in ("nodes", "language", "programs", "text")]
SEQUENCES = [
    f"tests/check/test_{name}.py"
    for name in ("rasp_bounds", "refusals_of_rasp", "rasp_source", "rasp_selectors")
]
WAYS = ["tests/check/test_ways_of_circuits.py"]
CLOCKED = ["tests/check/test_clocked.py", *WAYS]
FILTERS = [f"tests/check/test_{name}.py" for name in ("filters", "refusals", "forged_filters")]
CLASSIFIERS = ["tests/check/test_forged_classifiers.py", "tests/test_sklearn.py"]
CORE = [
    "tests/check/test_core_layers.py",
    "tests/check/test_core.py",
    "tests/check/test_core_networks.py",
    "tests/check/test_refusals_of_compact.py",
]
STOCK = ["tests/check/test_stock.py"]
TRUSTED: dict[str, list[str]] = {
    "tapegrad_check": [
        f"tests/check/test_{name}.py" for name in ("verdicts", "stock", "sources", "programs_on_tapes")
    ],
    "tapegrad_check.targets.attention": HEADS,
    "tapegrad_check.arithmetic": [
        "tests/check/test_arithmetic.py",
        "tests/check/test_forged_numbers.py",
        "tests/targets/test_relu_proof.py",
    ],
    "tapegrad_check.boundary": ["tests/check/test_boundary.py"],
    "tapegrad_check.products": ["tests/check/test_products.py"],
    "tapegrad_check.signals": ["tests/check/test_boundary.py"],
    "tapegrad_check.instructions.cases": PAGE,
    "tapegrad_check.passes.circuits": CHECK,
    "tapegrad_check.targets.classifiers": CLASSIFIERS,
    "tapegrad_check.passes.clocked": CLOCKED,
    "tapegrad_check.passes.drawings": WAYS,
    "tapegrad_check.targets.clock": CLOCKED,
    "tapegrad_check.sources.circuits": [*CHECK, *CLOCKED],
    "tapegrad_check.instructions.datapath": PAGE,
    "tapegrad_check.targets.decoder": ["tests/check/test_refusals_of_texts.py"],
    "tapegrad_check.targets.emulator": [*CHECK, "tests/targets/emulator/test_saved.py"],
    "tapegrad_check.targets.exact_memory": [*CHECK, "tests/targets/emulator/test_saved.py"],
    "tapegrad_check.instructions.execution": ON_TAPES,
    "tapegrad_check.targets.extended": [*CHECK, "tests/targets/extended/test_saved.py"],
    "tapegrad_check.targets.extended_loss": ["tests/check/test_refusals_of_trained.py"],
    "tapegrad_check.values": ["tests/check/test_refusals_of_trained.py"],
    "tapegrad_check.folder": CHECK,
    "tapegrad_check.targets.heads": [*VERDICTS, *HEADS, *PROOFS, *CLOCKED],
    "tapegrad_check.passes.machines": CHECK,
    "tapegrad_check.core.nodes": ["tests/check/test_nodes.py", "tests/check/test_passes_to_circuits.py"],
    "tapegrad_check.targets.noise_tolerant_memory": [*CHECK, "tests/targets/emulator/test_saved.py"],
    "tapegrad_check.on_tapes.layout": ON_TAPES,
    "tapegrad_check.in_tokens.pages": RECORDS,
    "tapegrad_check.passes": CHECK,
    "tapegrad_check.passes.plans": CHECK,
    "tapegrad_check.instructions.ports": PROOFS[:2],
    "tapegrad_check.in_tokens.program_texts": [*VERDICTS, *RECORDS],
    "tapegrad_check.passes.programs": [*VERDICTS, *PROOFS],
    "tapegrad_check.rasp.program": SEQUENCES,
    "tapegrad_check.rasp.heads": SEQUENCES,
    "tapegrad_check.sources.rasp": SEQUENCES,
    "tapegrad_check.rasp.tables": SEQUENCES,
    "tapegrad_check.targets.rcnn": FILTERS,
    "tapegrad_check.targets.filters": FILTERS,
    "tapegrad_check.targets.ternary_filters": FILTERS,
    "tapegrad_check.in_tokens.records": ["tests/check/test_refusals_of_texts.py"],
    "tapegrad_check.targets.relu": [
        "tests/check/test_refusals_of_circuits.py",
        "tests/check/test_refusals_of_compact.py",
        "tests/targets/test_relu_proof.py",
        "tests/check/test_sources.py",
    ],
    "tapegrad_check.instructions.rv32": PAGE,
    "tapegrad_check.targets.simplex": CHECK,
    "tapegrad_check.sources": CHECK,
    "tapegrad_check.passes.step": CHECK,
    "tapegrad_check.instructions.subleq": ON_TAPES,
    "tapegrad_check.in_tokens.subleq_records": RECORDS,
    "tapegrad_check.passes.tables": ON_TAPES,
    "tapegrad_check.targets.tape": CHECK,
    "tapegrad_check.targets.tapes": HEADS,
    "tapegrad_check.in_tokens.token_nets": RECORDS,
    "tapegrad_check.targets.transformer": CHECK,
    "tapegrad_check.targets.steps": [*HEADS, "tests/check/test_refusals_of_steps.py"],
    "tapegrad_check.targets.vertices": [*CHECK, "tests/targets/emulator/test_saved.py"],
    "tapegrad_check.formulas.words": ["tests/check/test_words.py", *PAGE],
    "tapegrad_check.on_tapes.paths": ["tests/check/test_paths.py", *INSTRUCTION],
    "tapegrad_check.on_tapes.walks": [*WALKS, *INSTRUCTION],
    "tapegrad_check.on_tapes.ground": ["tests/check/test_ground.py", *INSTRUCTION],
    "tapegrad_check.on_tapes.rounds": ["tests/check/test_ends_of_instructions.py", *INSTRUCTION],
    "tapegrad_check.on_tapes.one_instruction": ["tests/check/test_ends_of_instructions.py", *INSTRUCTION],
    "tapegrad_check.on_tapes.rv32": ["tests/check/test_rv32_on_tapes.py", *INSTRUCTION],
    "tapegrad_check.in_tokens.rv32_proof": [*BITS, "tests/check/test_rv32_parts.py", *TOKENS],
    "tapegrad_check.in_tokens.rv32_rounds": [*BITS, "tests/check/test_rv32_parts.py", *TOKENS],
    "tapegrad_check.in_tokens.rv32_results": TOKENS,
    "tapegrad_check.in_tokens.rv32_operands": TOKENS,
    "tapegrad_check.in_tokens.rv32_stages": TOKENS,
    "tapegrad_check.in_tokens.rv32_tokens": [*BITS, "tests/check/test_rv32_parts.py", *TOKENS],
    "tapegrad_check.in_tokens.rv32_records": TOKENS,
    "tapegrad_check.in_tokens.page_formulas": TOKENS,
    "tapegrad_check.rasp.drift": ["tests/check/test_drift.py"],
    "tapegrad_check.rasp.disguise": ["tests/check/test_disguised_units.py", *DISGUISE],
    "tapegrad_check.rasp.disguised_heads": ["tests/check/test_disguised_heads.py", *DISGUISE],
    "tapegrad_check.rasp.answer_key": ["tests/check/test_answer_keys.py", *DISGUISE],
    "tapegrad_check.passes.rasp": [*VERDICTS, *WAYS, "tests/check/test_rasp_circuit.py"],
    **dict.fromkeys(
        (
            f"tapegrad_check.core.{name}"
            for name in ("extract", "functions", "layers", "lrat", "places", "solver", "stateless")
        ),
        CORE,
    ),
    "tapegrad_check.targets.stock": STOCK,
    "tapegrad_check.targets.stock_nets": STOCK,
    "tapegrad_check.targets.stock_rotary": STOCK,
    "tapegrad_check.in_tokens.words": [*STOCK, "tests/check/test_rv32_parts.py"],
    "tapegrad_check.formulas.diagrams": ["tests/check/test_diagrams.py"],
    "tapegrad_check.maps": ["tests/check/test_fields.py"],
    "tapegrad_check.fields": ["tests/check/test_fields.py", "tests/check/test_sources.py"],
    "tapegrad_check.instructions": PAGE,
    "tapegrad._lockstep": VERIFY,
    "tapegrad._verify": [*VERIFY, "tests/targets/test_nan.py"],
    "tapegrad.machines.model": [f"tests/machines/test_{name}.py" for name in ("model", "words", "copies")],
    "tapegrad.machines.compiled": ["tests/machines/test_compiled.py"],
    "tapegrad.attention.analysis": ["tests/attention", *HEADS],
    "tapegrad.attention.interpreter": ["tests/attention/test_attention.py"],
    "tapegrad.attention.language": [
        *(f"tests/attention/test_{name}.py" for name in ("tokens", "cells", "subleq_tokens")),
        *RECORDS,
    ],
    "tapegrad.attention.steps": ["tests/attention/test_steps.py", "tests/targets/test_sequences.py"],
    "tapegrad.attention.tokens": TEXTS[1:],
    "tapegrad.circuits.clocked.model": ["tests/circuits/test_clocked.py"],
    "tapegrad.circuits.model": [
        f"tests/circuits/test_{name}.py" for name in ("model", "evaluator", "bad_input")
    ],
    "tapegrad.circuits.evaluator": ["tests/circuits/test_evaluator.py", "tests/circuits/test_layered.py"],
    "tapegrad.learners.model": [
        "tests/learners/test_model.py",
        "tests/learners/test_ready.py",
        "tests/learners/test_bad_input.py",
    ],
    "tapegrad.programs.interpreters": PROGRAMS,
    "tapegrad.programs.compiled": PROGRAMS,
    "tapegrad.rasp.functions": RASP,
    "tapegrad.rasp.nodes": RASP,
    "tapegrad.rasp.program": RASP,
    "tapegrad.targets.relu.exactness": ["tests/targets/test_relu_proof.py"],
    "tapegrad.targets.transformer.exactness": [EXACT, *REFUSALS],
    "tapegrad.targets.rcnn.exactness": [EXACT, *REFUSALS, "tests/targets/rcnn/test_size.py"],
    "tapegrad.targets.emulator.constants": EMULATOR,
    "tapegrad.targets.emulator.numbers": EMULATOR,
    "tapegrad.targets.decoder.net": [
        "tests/targets/test_decoder.py",
        "tests/targets/test_decoder_programs.py",
    ],
    "tapegrad.targets.decoder.sequences": ["tests/targets/test_sequences.py"],
    "tapegrad.targets.simplex.build": [
        "tests/targets/simplex/test_build.py",
        *REFUSALS,
        "tests/check/test_descent.py",
    ],
    "tapegrad.targets.tape.build": [
        "tests/targets/tape/test_build.py",
        *REFUSALS,
        "tests/check/test_descent.py",
    ],
}
"""Modules, and the tests that belong to each."""
