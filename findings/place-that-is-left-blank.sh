#!/usr/bin/env bash
# $GPGGA,,,,,,0,00,,,M,,M,,*66
#
# NMEA 0183, section 5.2: a field is left blank where its value is not known, as that of the place is while a receiver finds too few
# satellites; quality 0 says so. A time may have parts of seconds.
# Guess: parsers of NMEA give nothing for the place, or an error.
# Seen: nmea-simple 3.3.0 (npm) and pynmea2 1.19.0 (Python) give the latitude 0 and the longitude 0, south of Ghana. nmea-simple gives
# the height 0 and the time of midnight, 1 January 1970, too, and for a satellite without a signal the strength 0. It drops the half of
# 23:59:59.5 where a date stands beside it. pynmeagps 1.1.8 (Python) gives blanks.
# Each ship begins its voyage in the Gulf of Guinea.
# shellcheck disable=SC2016 # a sentence begins with a dollar sign
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install nmea-simple@3.3.0
pip_install pynmea2==1.19.0 pynmeagps==1.1.8
# with_sum SENTENCE: it, with its check sum
with_sum() {
    python3 -c '
import functools, operator, sys
print("$%s*%02X" % (sys.argv[1], functools.reduce(operator.xor, sys.argv[1].encode())))' "$1"
}
simple() {
    node -e '
        const found = require("nmea-simple").parseNmeaSentence(process.argv[1]);
        console.log(process.argv.slice(2).map((name) => name.split(".").reduce((part, key) => part[key], found))
            .map((value) => value instanceof Date ? value.toISOString() : value).join(" "));' "$(with_sum "$1")" "${@:2}"
}
python_place() {
    v/bin/python -c '
import pynmea2, pynmeagps, sys
if sys.argv[1] == "pynmea2":
    found = pynmea2.parse(sys.argv[2])
    print(f"[{found.latitude:.4f}] [{found.longitude:.4f}]")
else:
    found = pynmeagps.NMEAReader.parse((sys.argv[2] + "\r\n").encode())
    print(f"[{found.lat}] [{found.lon}]")' "$1" "$(with_sum "$2")"
}
KNOWN=GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,, BLANK=GPGGA,,,,,,0,00,,,M,,M,,
seen 'the sentence' '$GPGGA,,,,,,0,00,,,M,,M,,*66' "$(with_sum $BLANK)"
seen 'pynmea2: known' '[48.1173] [11.5167]' "$(python_place pynmea2 $KNOWN)"
seen 'pynmeagps: known' '[48.1173] [11.5166666667]' "$(python_place pynmeagps $KNOWN)"
seen 'nmea-simple: known' '48.1173 11.516666666666667' "$(simple $KNOWN latitude longitude)"
seen 'pynmea2: blank' '[0.0000] [0.0000]' "$(python_place pynmea2 $BLANK)"
seen 'pynmeagps: blank' '[] []' "$(python_place pynmeagps $BLANK)"
seen 'nmea-simple: blank' '0 0 0 1970-01-01T00:00:00.000Z' "$(simple $BLANK latitude longitude altitudeMeters time)"
seen 'nmea-simple: a signal' '46 0' "$(simple GPGSV,1,1,02,01,40,083,46,02,17,308, satellites.0.SNRdB satellites.1.SNRdB)"
seen 'nmea-simple: half a second' 1999-01-01T23:59:59.000Z \
    "$(simple GNRMC,235959.5,A,3345.1234,S,15112.5,E,022.4,084.4,010199,003.1,W,A datetime)"
