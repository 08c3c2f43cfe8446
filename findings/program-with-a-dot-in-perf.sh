#!/usr/bin/env bash
# a.out 12 100.000001: 1 cycles:
#         400675 <Vec<u8> as Write>::flush (/srv/a.out)
#
# perf script: a sample begins with the name of the thread as it is, which may have dots, hyphens, slashes and blanks; a function of
# Rust that belongs to a trait begins with the type in angle brackets.
# Guess: a reader takes the first line for the heading, and the whole name of the function.
# Seen: stackvis 0.5.0 (npm) takes the heading of a.out, of kworker/0:1 and of a-b for the innermost function, so that each sample is
# a stack of its own, with its time in it. It cuts functions at the second bracket, so that flush and write become one.
# A profile of such a program has as many stacks as samples, and one of Rust puts most of its time into a few names.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install stackvis@0.5.0
# stacks THREAD FUNCTION...: the stacks of one sample for each function, joined by |
stacks() {
    local thread=$1 function
    local -i time=1
    shift
    for function; do
        printf '%s 12 100.00000%d: 1 cycles:\n\t400675 %s (/srv/a.out)\n\t400600 main (/srv/a.out)\n\n' "$thread" $time "$function"
        time+=1
    done | node_modules/.bin/stackvis perf collapsed | sort | paste -sd '|'
}
# shellcheck disable=SC2016 # the mark between a program and its function
{
    seen 'afpa' 'afpa`main,afpa`run 2' "$(stacks afpa run run)"
    for name in a.out a-b kworker/0:1; do
        seen "$name" "main,run,$name 12 100.000001: 1 cycles: 1|main,run,$name 12 100.000002: 1 cycles: 1" "$(stacks "$name" run run)"
    done
    seen 'a function of C++' 'afpa`main,afpa`run 1' "$(stacks afpa 'run(int, char)')"
    seen 'two functions of Rust' 'afpa`main,afpa`<Vec 2' "$(stacks afpa '<Vec<u8> as Write>::flush' '<Vec<u8> as Write>::write')"
}
