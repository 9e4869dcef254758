-- Queries the Portcullis gate for each request. Loaded by haproxy.cfg, which lists the words to replace.
local forwarded = { "authorization", "dpop", "origin", "access-control-request-method", "x-request-id", "traceparent" }
local returned = { "content-type", "cache-control", "www-authenticate", "dpop-nonce", "retry-after", "x-request-id", "vary",
  "access-control-allow-origin", "access-control-allow-credentials", "access-control-expose-headers" }

core.register_action("portcullis", { "http-req" }, function(txn)
  local sent = txn.http:req_get_headers()
  local headers = {
    ["x-forwarded-method"] = { txn.sf:method() },
    ["x-forwarded-uri"] = { txn.sf:pathq() },
    ["x-forwarded-proto"] = { "https" },
    ["x-forwarded-host"] = { "@HOST@:@PORT@" },
    ["x-forwarded-for"] = { txn.sf:src() },
  }
  for _, name in ipairs(forwarded) do
    if sent[name] then
      headers[name] = {}
      for index = 0, #sent[name] do table.insert(headers[name], sent[name][index]) end
    end
  end
  local gate = { url = "http://127.0.0.1/forward-auth", dst = "unix@@FOLDER@/gate.sock", headers = headers, timeout = 12000 }
  local response = core.httpclient():get(gate)
  if response.status == 200 then
    for name, values in pairs(response.headers) do
      if name:sub(1, 7) == "x-auth-" then txn.http:req_set_header(name, values[0]) end
    end
    -- For rules with "exchange": the token of the upstream. Uncomment both if all rules have one, because for others they delete
    -- the client's own token, which the upstream may read.
    -- txn.http:req_del_header("authorization")
    -- if response.headers["authorization"] then txn.http:req_set_header("authorization", response.headers["authorization"][0]) end
    -- The upstream gets the id of the caller if it is valid, otherwise the id of the gate.
    local id, given = response.headers["x-request-id"], sent["x-request-id"]
    if id then
      txn:set_var("txn.gate_id", id[0])
      if not given or #given > 0 or #given[0] > 128 or not given[0]:match("^[%w_.:-]+$") then
        txn.http:req_set_header("x-request-id", id[0])
      end
    end
    if response.headers["dpop-nonce"] then txn:set_var("txn.dpop_nonce", response.headers["dpop-nonce"][0]) end
    return
  end
  -- Every decision of the gate has an id; without one, the request is refused. A head that is malformed (400) or too large
  -- (431) gets no decision.
  local decided = response.status ~= nil and response.status >= 400 and response.headers["x-request-id"] ~= nil
  local known = decided or response.status == 400 or response.status == 431
  local reply = txn:reply { status = known and response.status or 503, body = known and response.body or "" }
  for _, name in ipairs(returned) do
    if known and response.headers[name] then reply:add_header(name, response.headers[name][0]) end
  end
  txn:done(reply)
end)
