#!/usr/bin/env bash
# user:$apr1$...:a comment
#
# The manual of nginx, auth_basic_user_file, has a comment as the third field of a line; Apache's mod_authn_file reads
# the second field alone, too.
# Guess: libraries that read such files read those lines.
# Seen: passlib 1.7.4 (Python) calls the file malformed, whichever user it is asked for. htpasswd-js 1.0.2 (npm) takes
# the comment for a part of the hash, and refuses the right password.
# One comment for one user keeps all users out, where the file of a server goes to an application.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
HASH=$(openssl passwd -apr1 -salt abcdefgh right)

pip_install passlib==1.7.4
python() {
    v/bin/python -c '
import sys
from passlib.apache import HtpasswdFile
try:
    print(HtpasswdFile.from_string(sys.argv[1]).check_password("a", "right"))
except ValueError as error:
    print(error)' "$1"
}
npm_install htpasswd-js@1.0.2
js() {
    node -e '
        const { authenticate } = require("htpasswd-js");
        authenticate({ username: "a", password: "right", data: process.argv[1] }).then(console.log)' "$1"
}
comment="b:$HASH:a comment"
seen 'passlib, without' True "$(python "a:$HASH")"
seen 'htpasswd-js, without' true "$(js "a:$HASH")"
seen 'passlib, with a comment' 'malformed htpasswd file (error reading line 1)' "$(python "a:$HASH:a comment")"
seen 'htpasswd-js, with a comment' false "$(js "a:$HASH:a comment")"
seen "passlib, with another user's comment" 'malformed htpasswd file (error reading line 2)' \
    "$(python "a:$HASH"$'\n'"$comment")"
seen "htpasswd-js, with another user's comment" true "$(js "a:$HASH"$'\n'"$comment")"
