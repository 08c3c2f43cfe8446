#!/usr/bin/env bash
# <trkpt lat="0" lon="-78.4"><ele>0</ele></trkpt>
#
# GPX 1.1, schema: a point lies at a latitude from -90 to 90, and a height is a number of metres. A track may have several segments,
# between which the receiver was off. It is XML, in which names may have a prefix, and text may stand in CDATA.
# Guess: libraries for GPX find this point, and add nothing for the way between two segments.
# Seen: gpx-parse 0.10.4 (npm) gives the latitude -1 and the height -1, 111 km to the south. gpxparser 3.0.8 and @we-gold/gpxjs 1.2.0
# (npm) make one track of two segments, and count the way between them; gpxparser leaves the marks of CDATA in a name. gpxpy 1.6.2
# (Python) reads all of these. Where names have a prefix, all four find nothing.
# A pause in which somebody went by train is a part of the run.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install gpx-parse@0.10.4 gpxparser@3.0.8 @we-gold/gpxjs@1.2.0 @xmldom/xmldom@0.9.12
pip_install gpxpy==1.6.2
cat >read.mjs <<'JS'
import { createRequire } from "module";
import { readFileSync } from "fs";
import { parseGPXWithCustomParser } from "@we-gold/gpxjs";
const require = createRequire(import.meta.url), library = process.argv[2], text = readFileSync("a.gpx", "utf8");
const { DOMParser } = require("@xmldom/xmldom");
const km = (metres) => `${Math.round(metres / 1000)} km`;
const read = {
    "gpx-parse": () => {
        let found;
        require("gpx-parse").parseGpx(text, (error, data) => (found = error ? error : data));
        const track = found.tracks[0], point = track.segments[0][0];
        return [point.lat, point.lon, point.elevation, track.segments.length, track.name];
    },
    gpxparser: () => {
        const file = new (require("gpxparser"))();
        file.parse(text);
        const track = file.tracks[0], point = track.points[0];
        return [point.lat, point.lon, point.ele, km(track.distance.total), track.name];
    },
    "@we-gold/gpxjs": () => {
        const [file] = parseGPXWithCustomParser(text, (xml) => new DOMParser().parseFromString(xml, "text/xml"));
        const track = file.tracks[0], point = track.points[0];
        return [point.latitude, point.longitude, point.elevation, km(track.distance.total), track.name];
    },
};
try {
    console.log(...read[library]());
} catch {
    console.log("nothing");
}
JS
cat >read.py <<'PY'
import gpxpy

tracks = gpxpy.parse(open("a.gpx")).tracks
if tracks:
    point = tracks[0].segments[0].points[0]
    print(f"{point.latitude:g} {point.longitude:g} {point.elevation:g} {round(tracks[0].length_2d() / 1000)} km {tracks[0].name}")
else:
    print("nothing")
PY
# each PREFIX GPXPY GPX-PARSE GPXPARSER WE-GOLD
each() {
    local p=$1
    cat >a.gpx <<GPX
<?xml version="1.0"?>
<${p}gpx xmlns${p:+:${p%:}}="http://www.topografix.com/GPX/1/1" version="1.1" creator="a"><${p}trk><${p}name><![CDATA[a<b]]></${p}name>
<${p}trkseg><${p}trkpt lat="0" lon="-78.4"><${p}ele>0</${p}ele></${p}trkpt><${p}trkpt lat="0.1" lon="-78.4"/></${p}trkseg>
<${p}trkseg><${p}trkpt lat="5" lon="-78.4"/><${p}trkpt lat="5.1" lon="-78.4"/></${p}trkseg></${p}trk></${p}gpx>
GPX
    seen "gpxpy: the prefix '$p'" "$2" "$(v/bin/python read.py)"
    seen '  gpx-parse' "$3" "$(node read.mjs gpx-parse)"
    seen '  gpxparser' "$4" "$(node read.mjs gpxparser)"
    seen '  @we-gold/gpxjs' "$5" "$(node read.mjs @we-gold/gpxjs)"
}
each '' '0 -78.4 0 22 km a<b' '-1 -78.4 -1 2 a<b' '0 -78.4 0 567 km <![CDATA[a<b]]>' '0 -78.4 0 567 km a<b'
each g: nothing nothing nothing nothing
