-- Wireshark dissector for gradplane's aggregation packets (UDP port 18256).
--
-- Wireshark: put this file into the folder "Personal Lua Plugins" (Help > About > Folders).
-- tshark:    tshark -X lua_script:gradplane.lua -r run.pcap -Y 'gradplane.type == 4'
--
-- Every field can be filtered for: gradplane.slot == 3 && gradplane.round > 2. Indices and sums are
-- one field each, with all values in the text; gradplane.sum.max and gradplane.sum.total filter sums.

local gradplane = Proto("gradplane", "gradplane aggregation")

local PORT, HEADER_SIZE, VERSION = 18256, 30, 2
local FIRST_SIZE = 24  -- of version 1, in old captures: without what comes after the norm
local NORM, NORM_RESULT, INDICES, SUMS, STRAGGLER, PARTIAL, STATUS, EPOCH, QUESTION = 1, 2, 3, 4, 5, 6, 7, 8, 9
local PATH_SIZE = 8
local A_LINE = 16
local sum_widths = { [8] = true, [16] = true, [32] = true }
local code_widths = { [1] = true, [2] = true, [4] = true, [8] = true }

local types = {
  [NORM] = "norm", [NORM_RESULT] = "norm result", [INDICES] = "indices", [SUMS] = "sums",
  [STRAGGLER] = "straggler notice", [PARTIAL] = "partial sums", [STATUS] = "status",
  [EPOCH] = "epoch notice", [QUESTION] = "question",
}

local f = gradplane.fields
f.version = ProtoField.uint8("gradplane.version", "Version", base.DEC, nil, 0xf0)
f.type = ProtoField.uint8("gradplane.type", "Type", base.DEC, types, 0x0f)
f.flags = ProtoField.uint8("gradplane.flags", "Flags", base.HEX)
f.answer = ProtoField.bool("gradplane.flags.answer", "Answer", 8, nil, 0x01)
f.closed = ProtoField.bool("gradplane.flags.closed", "Closed", 8, nil, 0x02)
f.of_norm = ProtoField.bool("gradplane.flags.norm", "Of the norm", 8, nil, 0x04)
f.has_path = ProtoField.bool("gradplane.flags.path", "Path", 8, nil, 0x08)
f.uncounted = ProtoField.bool("gradplane.flags.uncounted", "Rack not counted", 8, nil, 0x10)
f.direct = ProtoField.bool("gradplane.flags.direct", "Direct: no switch may add it", 8, nil, 0x20)
f.repeats = ProtoField.bool("gradplane.flags.repeats", "Repeats eight bytes of indices", 8, nil, 0x40)
f.bare = ProtoField.bool("gradplane.flags.bare", "Bare: another worker needs the sums", 8, nil, 0x80)
f.path = ProtoField.uint64("gradplane.path", "Path (at a worker: its rack's workers in)", base.HEX)
f.job = ProtoField.uint8("gradplane.job", "Job")
f.worker = ProtoField.uint8("gradplane.worker", "Worker (version 1, results: workers summed)")
f.slot = ProtoField.uint16("gradplane.slot", "Slot")
f.pass = ProtoField.uint8("gradplane.pass", "Pass")
f.sum_bits = ProtoField.uint8("gradplane.sum_bits", "Bits of a sum")
f.round = ProtoField.uint32("gradplane.round", "Round")
f.bitmap = ProtoField.uint64("gradplane.bitmap", "Workers in", base.HEX)
f.norm = ProtoField.float("gradplane.norm", "Norm")
f.count = ProtoField.uint16("gradplane.count", "Workers summed (indices: who needs the sums, plus 1)")
f.epoch = ProtoField.uint8("gradplane.epoch", "Epoch")
f.code_bits = ProtoField.uint8("gradplane.code_bits", "Bits of a code")
f.checksum = ProtoField.uint16("gradplane.checksum", "Checksum", base.HEX)
f.indices = ProtoField.bytes("gradplane.indices", "Indices")
f.sums = ProtoField.bytes("gradplane.sums", "Sums")
f.sum_max = ProtoField.uint32("gradplane.sum.max", "Largest sum")
f.sum_total = ProtoField.uint32("gradplane.sum.total", "Total of the sums")

local short = ProtoExpert.new(
  "gradplane.short", "Fewer bytes than the type needs", expert.group.MALFORMED, expert.severity.ERROR)
local unknown = ProtoExpert.new(
  "gradplane.unknown", "Unknown version, type, sum_bits or code_bits", expert.group.PROTOCOL,
  expert.severity.WARN)
local damaged = ProtoExpert.new(
  "gradplane.damaged", "The header's checksum is wrong", expert.group.CHECKSUM, expert.severity.ERROR)
local first = ProtoExpert.new(
  "gradplane.first", "Version 1, before gradplane's headers had a checksum", expert.group.PROTOCOL,
  expert.severity.NOTE)
local cut = ProtoExpert.new(
  "gradplane.cut", "The capture holds only a part of the packet", expert.group.UNDECODED,
  expert.severity.NOTE)
gradplane.experts = { short, unknown, damaged, first, cut }

-- A packet of which a snap length has cut a part is not malformed.
local function add_missing(tree, buffer, needed)
  tree:add_proto_expert_info(buffer:reported_len() < needed and short or cut)
end

local function body_size(kind, sum_bits, code_bits, flags)
  local repeats = math.floor(flags / 64) % 2 == 1
  if kind == INDICES then return repeats and 0 or 1024 / sum_bits * code_bits end
  if kind == SUMS and flags >= 128 then return 0 end
  if kind == SUMS and repeats then return 8 * sum_bits / code_bits end
  if kind == SUMS or kind == PARTIAL then return 1024 end
  return 0
end

-- The values of a body as numbers: indices of 1, 2, 4 or 8 bits, or sums of 8, 16 or 32 bits.
local function values_of(body, kind, sum_bits, code_bits)
  local values = {}
  if kind == INDICES then
    for i = 0, body:len() - 1 do
      local byte = body(i, 1):uint()
      for place = 8 - code_bits, 0, -code_bits do
        values[#values + 1] = math.floor(byte / 2 ^ place) % 2 ^ code_bits
      end
    end
  else
    local size = sum_bits / 8
    for i = 0, body:len() - size, size do values[#values + 1] = body(i, size):uint() end
  end
  return values
end

-- One line of the tree for every A_LINE values.
local function add_lines(tree, body, values)
  local bytes = body:len() / #values
  for first = 1, #values, A_LINE do
    local last = math.min(first + A_LINE - 1, #values)
    local text = table.concat(values, " ", first, last)
    local start = math.floor((first - 1) * bytes)
    local range = body(start, math.ceil((last - first + 1) * bytes))
    tree:add(range, string.format("%4d: %s", first - 1, text))
  end
end

local function add_sum_statistics(tree, body, values)
  local largest, total = 0, 0
  for _, value in ipairs(values) do
    largest = math.max(largest, value)
    total = total + value
  end
  tree:add(f.sum_max, body, largest):set_generated()
  tree:add(f.sum_total, body, total):set_generated()
end

local function add_body(tree, body, kind, sum_bits, code_bits)
  local values = values_of(body, kind, sum_bits, code_bits)
  local field = kind == INDICES and f.indices or f.sums
  local branch = tree:add(field, body)
  branch:append_text(string.format(" (%d values)", #values))
  add_lines(branch, body, values)
  if kind ~= INDICES then add_sum_statistics(branch, body, values) end
end

local function add_header(tree, buffer)
  tree:add(f.version, buffer(0, 1))
  tree:add(f.type, buffer(0, 1))
  local flags = tree:add(f.flags, buffer(1, 1))
  flags:add(f.answer, buffer(1, 1))
  flags:add(f.closed, buffer(1, 1))
  flags:add(f.of_norm, buffer(1, 1))
  flags:add(f.has_path, buffer(1, 1))
  flags:add(f.uncounted, buffer(1, 1))
  flags:add(f.direct, buffer(1, 1))
  flags:add(f.repeats, buffer(1, 1))
  flags:add(f.bare, buffer(1, 1))
  tree:add(f.job, buffer(2, 1))
  tree:add(f.worker, buffer(3, 1))
  tree:add(f.slot, buffer(4, 2))
  tree:add(f.pass, buffer(6, 1))
  tree:add(f.sum_bits, buffer(7, 1))
  tree:add(f.round, buffer(8, 4))
  tree:add(f.bitmap, buffer(12, 8))
  tree:add(f.norm, buffer(20, 4))
end

-- The bytes before the body: the header's and, with its flag and not to a parent, the path's.
local upwards = { [NORM] = true, [INDICES] = true, [PARTIAL] = true, [QUESTION] = true }
local function head_size(buffer)
  local has_path = buffer:len() > 1 and math.floor(buffer(1, 1):uint() / 8) % 2 == 1
  if has_path and not upwards[buffer(0, 1):uint() % 16] then return HEADER_SIZE + PATH_SIZE end
  return HEADER_SIZE
end

-- The internet checksum of the header is right if its 16-bit words add up to 0 modulo 65535.
local function is_damaged(buffer)
  local total = 0
  for i = 0, head_size(buffer) - 2, 2 do total = total + buffer(i, 2):uint() end
  return total % 65535 ~= 0
end

local function add_later_fields(tree, buffer)
  tree:add(f.count, buffer(24, 2))
  tree:add(f.epoch, buffer(26, 1))
  tree:add(f.code_bits, buffer(27, 1))
  local checksum = tree:add(f.checksum, buffer(28, 2))
  if is_damaged(buffer) then checksum:add_proto_expert_info(damaged) end
  if head_size(buffer) > HEADER_SIZE then tree:add(f.path, buffer(HEADER_SIZE, PATH_SIZE)) end
end

function gradplane.dissector(buffer, packet, root)
  packet.cols.protocol = "gradplane"
  local tree = root:add(gradplane, buffer())
  local old = buffer:len() > 0 and math.floor(buffer(0, 1):uint() / 16) == 1
  local header_size = old and FIRST_SIZE or head_size(buffer)
  if buffer:len() < header_size then
    add_missing(tree, buffer, header_size)
    return buffer:len()
  end
  local version, kind = math.floor(buffer(0, 1):uint() / 16), buffer(0, 1):uint() % 16
  local sum_bits, code_bits = buffer(7, 1):uint(), old and 4 or buffer(27, 1):uint()
  local info = string.format("%s, job %d, worker %d, slot %d, round %d",
    types[kind] or ("type " .. kind), buffer(2, 1):uint(), buffer(3, 1):uint(),
    buffer(4, 2):uint(), buffer(8, 4):uint())
  packet.cols.info = info
  tree:append_text(": " .. info)
  add_header(tree, buffer)
  if old then tree:add_proto_expert_info(first) else add_later_fields(tree, buffer) end
  if (version ~= VERSION and not old) or not types[kind] or not sum_widths[sum_bits]
    or not code_widths[code_bits] then
    tree:add_proto_expert_info(unknown)
    return buffer:len()
  end
  local size = body_size(kind, sum_bits, code_bits, buffer(1, 1):uint())
  if buffer:len() < header_size + size then
    add_missing(tree, buffer, header_size + size)
  elseif size > 0 then
    add_body(tree, buffer(header_size, size), kind, sum_bits, code_bits)
  end
  return buffer:len()
end

DissectorTable.get("udp.port"):add(PORT, gradplane)
