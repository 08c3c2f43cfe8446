-- Four of five requests are for what the proxy has in its cache, the fifth is for a server.

dofile(os.getenv("SUMMARY"))

local cached, distributed, count

function init()
   cached = wrk.format("GET", "/small.html")
   distributed = wrk.format("GET", "/app/tiny")
   count = 0
end

function request()
   count = count + 1
   if count % 5 == 0 then
      return distributed
   end
   return cached
end
