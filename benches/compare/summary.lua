-- Prints what wrk counted as one line of JSON, exactly: its own report rounds to three digits.
-- It defines nothing but `done`, which runs after the load: requests take wrk's fast path.

function done(summary, latency, _)
   local e = summary.errors
   io.write(string.format(
      'summary: {"requests": %d, "duration_us": %d, "bytes": %.0f, "p50_us": %d, "p99_us": %d, ' ..
      '"errors": {"connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d}}\n',
      summary.requests, summary.duration, summary.bytes,
      latency:percentile(50), latency:percentile(99),
      e.connect, e.read, e.write, e.status, e.timeout))
end
