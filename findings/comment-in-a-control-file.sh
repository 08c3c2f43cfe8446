#!/usr/bin/env bash
# debian/control: Package: a, # c, Version: 1
#
# Debian's manual of policy, section 5.1: in debian/control a line that begins with # is a comment, even between the lines of one
# field.
# Guess: a library for these files passes over the line.
# Seen: debian-inspector 31.1.1 (Python) gives the whole paragraph as one field, `unknown`, without an error. python-debian 1.1.1
# gives the fields.
# A list of dependencies that is made of such a file has none.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install debian-inspector==31.1.1 python-debian==1.1.1
read_file() {
    v/bin/python -c '
import sys
library, text = sys.argv[1:]
text = text.replace("|", "\n") + "\n"
if library == "debian-inspector":
    from debian_inspector.debcon import get_paragraphs_data
    print(*list(get_paragraphs_data(text))[0])
else:
    from debian.deb822 import Deb822
    print(*Deb822(text))' "$@"
}
seen 'debian-inspector: without' 'package depends version' "$(read_file debian-inspector 'Package: a|Depends: b|Version: 1')"
seen 'debian-inspector: between fields' unknown "$(read_file debian-inspector 'Package: a|# c|Depends: b|Version: 1')"
seen 'debian-inspector: within a field' unknown "$(read_file debian-inspector 'Package: a|Depends: b,|# c| d|Version: 1')"
seen 'python-debian: between fields' 'Package Depends Version' "$(read_file debian 'Package: a|# c|Depends: b|Version: 1')"
seen 'python-debian: within a field' 'Package Depends Version' "$(read_file debian 'Package: a|Depends: b,|# c| d|Version: 1')"
