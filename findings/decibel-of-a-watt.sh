#!/usr/bin/env bash
# 10 dB[W]
#
# "The Unified Code for Units of Measure", sections 21 and 22 and the tables of levels and of temperatures: B[W] is the logarithm of
# watts, and a prefix scales it, so that this is 10 W. %[slope] is a hundred times the tangent, and [degRe] counts 4 where Kelvin
# counts 5, from 273.15 K on.
# Guess: libraries for UCUM convert these units.
# Seen: @atomic-ehr/ucum 0.2.5 (npm) makes 1000000000 W of it, and 3 dB[W] of 100 W, where 20 is right, although it has dB as such.
# @lhncbc/ucum-lhc 7.1.10 (npm) makes 0.785 degrees of a slope of 100 %, 342.7 K of one degree of Réaumur, and nothing of a pH.
# A level of sound or of a signal is wrong by the power of its own.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @atomic-ehr/ucum@0.2.5 @lhncbc/ucum-lhc@7.1.10
cat >convert.mjs <<'JS'
import { ucum } from "@atomic-ehr/ucum";
import lhc from "@lhncbc/ucum-lhc";
const [library, value, from, to] = process.argv.slice(2);
const found = library === "atomic" ? ucum.convert(Number(value), from, to)
    : lhc.UcumLhcUtils.getInstance().convertUnitTo(from, Number(value), to).toVal;
console.log(found === null ? "nothing" : Number(found.toPrecision(6)));
JS
# each VALUE FROM TO ATOMIC LHC
each() {
    seen "@atomic-ehr/ucum: $1 $2 in $3" "$4" "$(node convert.mjs atomic "$1" "$2" "$3")"
    seen '  @lhncbc/ucum-lhc' "$5" "$(node convert.mjs lhc "$1" "$2" "$3")"
}
each 20 dB 1 100 100
each 2 'B[W]' W 100 100
each 10 'dB[W]' W 1000000000 10
each 100 W 'dB[W]' 3 20
each 100 '%[slope]' deg 45 0.785398
each 1 '[degRe]' K 274.4 342.688
each 7.4 '[pH]' mol/L 3.98107e-8 nothing
