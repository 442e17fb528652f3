-- What of a cell may reach a page: plain document structure only. Returns a function that, given how to refuse a cell
-- and how to decode an address, returns two filters: raw parts made native, then attributes, links and pictures checked.
local stringify = pandoc.utils.stringify

return function(refuse, decoded)

-- Raw HTML and TeX become native elements.
local ACTIVE = { "script", "iframe", "object", "embed", "link", "base", "meta", "form", "input", "frame", "applet" }
local function check_html(text)
  local lower = text:lower()
  for _, tag in ipairs(ACTIVE) do
    if lower:match("<%s*" .. tag .. "[%s>/]") or lower:match("<%s*" .. tag .. "$") then
      refuse("holds <" .. tag .. ">", "take it out, or print it as code")
    end
  end
  for _, name in ipairs{ "src", "srcset", "poster", "background" } do
    if lower:match("[%s\"']" .. name .. "%s*=%s*[\"']?%s*[%a%d+.-]*:?//") then
      refuse("loads an external resource", "save the file beside the notebook")
    end
  end
  if lower:match("url%(%s*[\"']?%s*[%a%d+.-]*:?//") or lower:match("@import") then
    refuse("loads an external style", "take it out")
  end
  if lower:match("[%s\"'/]on%a+%s*=") and lower:match("<") then refuse("holds an event handler", "take it out") end
end

local function is_number(s)
  local plain = s:gsub("[,%s%%×]", ""):gsub("−", "-"):gsub("\u{a0}", ""):gsub("\u{202f}", "")
  return tonumber(plain) ~= nil or s == "–" or s == "—"
end
local function aligned(tbl)
  local is_text, is_used = {}, {}
  for _, body in ipairs(tbl.bodies) do
    for _, row in ipairs(body.body) do
      for i, c in ipairs(row.cells) do
        local s = stringify(c.contents)
        if s ~= "" then
          is_used[i] = true
          s = s:gsub("−", "-"):gsub("^< ", "")
          if not is_number(s) and not s:match("^[%[(]?%-?%d[%d.,]*[^%a]*%d?") then is_text[i] = true end
          if s:match("%a%a%a") then is_text[i] = true end  -- a word, not a unit
        end
      end
    end
  end
  for i, spec in ipairs(tbl.colspecs) do
    tbl.colspecs[i] = { (is_used[i] and not is_text[i]) and pandoc.AlignRight or pandoc.AlignLeft, nil }
  end
  local function plain(rows)
    for _, row in ipairs(rows) do
      row.attr = pandoc.Attr()
      for _, c in ipairs(row.cells) do c.attr, c.alignment = pandoc.Attr(), "AlignDefault" end
    end
  end
  plain(tbl.head.rows)
  for _, body in ipairs(tbl.bodies) do plain(body.head) plain(body.body) end
  plain(tbl.foot.rows)
  return tbl
end

local native = {
  RawBlock = function(el)
    if el.format == "cell" then return nil end
    if el.format == "html" then
      check_html(el.text)
      return pandoc.read(el.text, "html").blocks:walk{ Table = aligned }
    end
    if el.format == "tex" and el.text:match("^%s*\\begin{") then
      return pandoc.Para{ pandoc.Math("DisplayMath", el.text) }
    end
    refuse("holds raw " .. el.format, "write Markdown")
  end,
  RawInline = function(el)
    if el.format == "html" then
      check_html(el.text)
      return pandoc.utils.blocks_to_inlines(pandoc.read(el.text, "html").blocks)
    end
    if el.format == "tex" then
      if el.text:match("^\\begin{") then return pandoc.Math("DisplayMath", el.text) end
      return pandoc.Str(el.text)
    end
    refuse("holds raw " .. el.format, "write Markdown")
  end,
}

-- No attribute but these, no address but these.
local KEPT = { alt = true, width = true, height = true, start = true, kind = true, label = true }
local function stripped(el)
  local drop = {}
  for name in pairs(el.attributes) do if not KEPT[name] then drop[#drop + 1] = name end end
  for _, name in ipairs(drop) do el.attributes[name] = nil end
  return el
end
local function at_hand(src)
  if io.open(src, "rb") then return src end
  local ok, _, data = pcall(pandoc.mediabag.fetch, decoded(src))
  if not ok or not data then refuse("picture " .. src .. " is missing", "save it beside the notebook") end
  local name = pandoc.utils.sha1(data) .. (src:match("%.%w+$") or "")
  local file = assert(io.open(name, "wb"))
  file:write(data)
  file:close()
  return name
end
local safe = {
  Span = stripped, Header = stripped, Code = stripped, CodeBlock = stripped, Table = stripped, Figure = stripped,
  Div = stripped,
  Link = function(el)
    local scheme = el.target:lower():gsub("%c", ""):match("^%s*([%a][%w+.-]*):")
    if scheme and scheme ~= "http" and scheme ~= "https" and scheme ~= "mailto" then
      refuse("links to " .. scheme .. ":", "link to an http(s) address")
    end
    return stripped(el)
  end,
  Image = function(el)
    if el.src:match("^%s*[%a][%w+.-]*:") or el.src:match("^%s*//") then
      refuse("external resource " .. el.src, "save the picture beside the notebook")
    end
    local alt = el.attributes.alt or stringify(el.caption)
    if alt:match("^%s*$") then refuse("a figure without alternative text", "write it: ![what it shows](file)") end
    el.attributes.alt, el.src = alt, at_hand(el.src)
    return stripped(el)
  end,
}

return native, safe
end
