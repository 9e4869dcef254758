-- Asks the Portcullis gate about each request. Loaded by haproxy.cfg, which says what to replace.
local asked = { "authorization", "dpop", "origin", "access-control-request-method", "x-request-id", "traceparent" }
local told = { "content-type", "cache-control", "www-authenticate", "dpop-nonce", "retry-after", "x-request-id" }

core.register_action("portcullis", { "http-req" }, function(txn)
  local sent = txn.http:req_get_headers()
  local headers = {
    ["x-forwarded-method"] = { txn.sf:method() },
    ["x-forwarded-uri"] = { txn.sf:pathq() },
    ["x-forwarded-proto"] = { "https" },
    ["x-forwarded-host"] = { "@HOST@:@PORT@" },
    ["x-forwarded-for"] = { txn.sf:src() },
  }
  for _, name in ipairs(asked) do
    if sent[name] then
      headers[name] = {}
      for index = 0, #sent[name] do table.insert(headers[name], sent[name][index]) end
    end
  end
  local gate = { url = "http://127.0.0.1/forward-auth", dst = "unix@@FOLDER@/gate.sock", headers = headers, timeout = 12000 }
  local answer = core.httpclient():get(gate)
  if answer.status == 200 then
    for name, values in pairs(answer.headers) do
      if name:sub(1, 7) == "x-auth-" then txn.http:req_set_header(name, values[0]) end
    end
    if answer.headers["dpop-nonce"] then txn:set_var("txn.dpop_nonce", answer.headers["dpop-nonce"][0]) end
    return
  end
  -- Without an answer of the gate, which always has an id, nobody is let in.
  local known = answer.status ~= nil and answer.status >= 400 and answer.headers["x-request-id"] ~= nil
  local reply = txn:reply { status = known and answer.status or 503, body = known and answer.body or "" }
  for _, name in ipairs(told) do
    if known and answer.headers[name] then reply:add_header(name, answer.headers[name][0]) end
  end
  txn:done(reply)
end)
