#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# `make check`: runs all checks of the source, prints which ones failed, ends with "N passed, N failed".
cd "$(dirname "$0")/.." || exit 1
passed=0
failed=0
run() {
    name=$1
    shift
    if output=$("$@" 2>&1); then
        passed=$((passed + 1))
        echo "ok      check $name"
    else
        failed=$((failed + 1))
        echo "FAILED  check $name"
    fi
    [ -z "$output" ] || echo "$output" | sed 's/^/        /'
}

# Other phases of tests may make the same objects (tests/phases.sh).
symbols() {
    flock build/make-debug.lock "${MAKE:-make}" --no-print-directory BUILD=debug -k objects >build/debug.log 2>&1 ||
        { grep -E 'error|Error' build/debug.log | head -20; return 1; }
    utils/check_layers.py --objects build/debug
}

mkdir -p build
run layers symbols
run sizes utils/check_sizes.py
run assertions utils/count_checks.py
run generated utils/check_generated.sh
run conf utils/check_conf.py
run docs utils/gen_docs.py --check
run readmes utils/check_readmes.py
run pages utils/check_docs.py
run benchmarks tests/bench/report.py --check
run counts utils/test_counts.py --check
run comments utils/check_comments.py
run texts utils/check_texts.py
run page utils/check_page.py
run output utils/check_output.sh
run words utils/check_words.sh
run format utils/check_format.sh
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
