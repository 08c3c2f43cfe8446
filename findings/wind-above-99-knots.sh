#!/usr/bin/env bash
# METAR EDDF 011200Z 240P99KT 5000 SN 10/05 Q1013
#
# WMO-No. 306, "Manual on Codes", FM 15, regulation 15.5.6: a wind of 100 knots or more is written P99KT, and one of 50 metres a second
# or more P49MPS. Regulation 15.7.5: M and P before a range of sight along a runway mean less, and more.
# Guess: libraries for METAR tell such a wind, and the range of R26/M0050VP2000N, for it is in a storm, and in fog, that they matter.
# Seen: metar-taf-parser 9.1.3 (npm) and metar-taf-parser-mivek 1.13.1 (Python) tell no wind, and no range that begins with M. The
# latter tells none that ends with P, either. metar 2.0.2 (Python) tells all of them.
# The strongest wind is shown as none.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install metar-taf-parser@9.1.3
pip_install metar-taf-parser-mivek==1.13.1 metar==2.0.2
cat >read.mjs <<'JS'
import { parseMetar } from "metar-taf-parser";
const { wind, runwaysInfo } = parseMetar(process.argv[2]);
console.log(wind?.speed ?? "none", runwaysInfo.length);
JS
cat >read.py <<'PY'
import sys

if sys.argv[1] == "metar":
    from metar.Metar import Metar
    report = Metar("METAR " + sys.argv[2])
    print(report.wind_speed.string(), len(report.runway))
else:
    from metar_taf_parser.parser.parser import MetarParser
    report = MetarParser().parse(sys.argv[2])
    print(report.wind.speed if report.wind else "none", len(report.runways_info))
PY
# each WIND RANGE METAR METAR-TAF-PARSER METAR-TAF-PARSER-MIVEK: the speed, and the number of runways
each() {
    local report="EDDF 011200Z $1 5000 $2 SN 10/05 Q1013"
    seen "metar: $1 $2" "$3" "$(v/bin/python read.py metar "$report")"
    seen '  metar-taf-parser' "$4" "$(node read.mjs "$report")"
    seen '  metar-taf-parser-mivek' "${5:-$4}" "$(v/bin/python read.py metar-taf-parser-mivek "$report")"
}
each 24098KT R26/P2000N '98 knots 1' '98 1'
each 240P99KT R26/P2000N 'greater than 99 knots 1' 'none 1'
each 240P49MPS R26/P2000N 'greater than 49 mps 1' 'none 1'
each 24098KT R26/0050V0300N '98 knots 1' '98 1'
each 24098KT R26/M0050V0300N '98 knots 1' '98 0'
each 24098KT R26/0050VP2000N '98 knots 1' '98 1' '98 0'
