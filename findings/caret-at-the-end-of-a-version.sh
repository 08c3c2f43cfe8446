#!/usr/bin/env bash
# 1.0^ and 1.0, and 1.0+ and 1.0, as versions of RPM
#
# rpm-version(7): a caret makes a version later than the one before it, and earlier than any later one; letters other than
# digits, the alphabet, ~ and ^ only separate.
# Guess: libraries that compare as RPM does find 1.0^ later than 1.0, and 1.0+ equal to it.
# Seen: rpm 4.18.0 does. rpm_vercmp 0.1.2 (Python) finds 1.0^ and 1.0 equal, although it knows 1.0^a. version_utils 0.3.2 (Python)
# finds 1.0+ later than 1.0. univers 32.0.1 (Python) does as rpm.
# A mirror that compares by them keeps one of two packages where rpm sees an order.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install rpm librpm9 librpmio9 librpmbuild9 rpm-common liblua5.3-0
pip_install rpm_vercmp==0.1.2 version_utils==0.3.2 univers==32.0.1
rpm() {
    RPM_CONFIGDIR=root/usr/lib/rpm root/usr/bin/rpm --eval "%{lua: print(rpm.vercmp('$1', '$2'))}"
}
python() {
    v/bin/python -c '
import sys, univers.rpm, version_utils.rpm
from rpm_vercmp import vercmp
compare = {"rpm_vercmp": vercmp, "version_utils": version_utils.rpm.compare_versions, "univers": univers.rpm.vercmp}
print(compare[sys.argv[1]](*sys.argv[2:]))' "$@"
}
seen 'rpm: 1.0^ and 1.0' 1 "$(rpm 1.0^ 1.0)"
seen 'rpm_vercmp: 1.0^ and 1.0' 0 "$(python rpm_vercmp 1.0^ 1.0)"
seen 'rpm_vercmp: 1.0^a and 1.0' 1 "$(python rpm_vercmp 1.0^a 1.0)"
seen 'univers: 1.0^ and 1.0' 1 "$(python univers 1.0^ 1.0)"
seen 'rpm: 1.0+ and 1.0' 0 "$(rpm 1.0+ 1.0)"
seen 'version_utils: 1.0+ and 1.0' 1 "$(python version_utils 1.0+ 1.0)"
seen 'univers: 1.0+ and 1.0' 0 "$(python univers 1.0+ 1.0)"
