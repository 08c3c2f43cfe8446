#!/usr/bin/env bash
# 192.0.2.1 - - [10/Oct/2024:13:55:36 +0530] "GET /a HTTP/2.0" 200 5
#
# The common log format (httpd.apache.org, mod_log_config) has the request line as it came, and the time with the
# server's offset from UTC: hours, then minutes. Servers write requests of HTTP/2 with the version HTTP/2.0.
# Guess: a reader of this format gives the path /a, the version 2.0 and the time 08:25:36 UTC.
# Seen: apache-log-parser 1.7.0 (Python) knows only HTTP/1 in a request line, and takes ` HTTP/2.0` for a part of the
# path. It takes the offset +0530 for five hours and three minutes. apachelogs 0.6.1 (Python) reads both.
# Figures by path fall apart in two as soon as a server speaks HTTP/2, and those from India are late by 27 minutes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install apache-log-parser==1.7.0 apachelogs==0.6.1
cat >read.py <<'PY'
import datetime, sys, warnings

def line(version, offset):
    return '192.0.2.1 - - [10/Oct/2024:13:55:36 %s] "GET /a HTTP/%s" 200 5' % (offset, version)

if sys.argv[1] == "apache-log-parser":
    warnings.simplefilter("ignore")
    import apache_log_parser
    found = apache_log_parser.make_parser('%h %l %u %t "%r" %>s %b')(line(*sys.argv[2:]))
    print(found["request_url"], found["time_received_utc_datetimeobj"].time())
else:
    import apachelogs
    found = apachelogs.LogParser(apachelogs.COMMON).parse(line(*sys.argv[2:]))
    time = found.request_time.astimezone(datetime.timezone.utc).time()
    print(found.request_line.split()[1], time)
PY
seen 'apache-log-parser: 1.1, +0500' '/a 08:55:36' "$(v/bin/python read.py apache-log-parser 1.1 +0500)"
seen 'apache-log-parser: 2.0, +0500' '/a HTTP/2.0 08:55:36' "$(v/bin/python read.py apache-log-parser 2.0 +0500)"
seen 'apache-log-parser: 1.1, +0530' '/a 08:52:36' "$(v/bin/python read.py apache-log-parser 1.1 +0530)"
seen 'apachelogs: 2.0, +0530' '/a 08:25:36' "$(v/bin/python read.py apachelogs 2.0 +0530)"
