-- Wireshark dissector for packets that p4/tos_compress.p4 has compressed: UDP with ToS 0x2C.
--
-- Wireshark: put this file into the folder "Personal Lua Plugins" (Help > About > Folders).
-- tshark:    tshark -X lua_script:tos_compress.lua -r s1-eth2_out.pcap -Y 'tosfloat.count > 100'
--
-- Known by the ToS, whatever the port. tosfloat.tag0 to tosfloat.tag3 are how many values of each
-- class there are; a packet whose lengths do not fit has tosfloat.malformed.

local tosfloat = Proto("tosfloat", "Compressed float32 values")

local DSCP, SHIM_SIZE, MESSAGE_SIZE, BURST = 11, 4, 16, 8
local SIZES = { [0] = 0, 1, 2, 4 }

local f = tosfloat.fields
f.count = ProtoField.uint16("tosfloat.count", "Values")
f.bound = ProtoField.uint8("tosfloat.bound", "Bound, 2^-k with k")
f.flags = ProtoField.uint8("tosfloat.flags", "Flags", base.HEX)
f.little_endian = ProtoField.bool("tosfloat.flags.little_endian", "Hosts little-endian", 8, nil, 0x01)
f.with_message = ProtoField.bool("tosfloat.flags.message", "Message header", 8, nil, 0x02)
f.message = ProtoField.bytes("tosfloat.message", "Message header")
f.burst = ProtoField.bytes("tosfloat.burst", "Burst")
f.tag0 = ProtoField.uint16("tosfloat.tag0", "Values of 0 bits")
f.tag1 = ProtoField.uint16("tosfloat.tag1", "Values of 8 bits")
f.tag2 = ProtoField.uint16("tosfloat.tag2", "Values of 16 bits")
f.tag3 = ProtoField.uint16("tosfloat.tag3", "Values of 32 bits")

local malformed = ProtoExpert.new(
  "tosfloat.malformed", "The bursts do not fit the number of values", expert.group.MALFORMED,
  expert.severity.ERROR)
local cut = ProtoExpert.new(
  "tosfloat.cut", "The capture holds only a part of the packet", expert.group.UNDECODED,
  expert.severity.NOTE)
tosfloat.experts = { malformed, cut }

local dscp = Field.new("ip.dsfield.dscp")

-- A sign, and a magnitude in units of its last bit's weight.
local function signed(number, half, unit)
  if number >= half then return -(number - half) * unit end
  return number * unit
end

local function value_of(vector, tag, bound)
  if tag == 0 then return 0 end
  if tag == 3 then return vector:float() end
  if tag == 2 then return signed(vector:uint(), 0x8000, 2 ^ -15) end
  return signed(vector:uint(), 0x80, 2 ^ (math.ceil(bound / 2) - bound - 7))
end

-- One burst of `count` values; where the next begins, or nil if this one is not whole.
local function add_burst(tree, body, at, count, bound, counts)
  if at + 2 > body:len() then return nil end
  local tags, start, texts = body(at, 2):uint(), at, {}
  at = at + 2
  for _ = 1, count do
    local tag = tags % 4
    tags = math.floor(tags / 4)
    local size = SIZES[tag]
    if at + size > body:len() then return nil end
    texts[#texts + 1] = string.format("%g", value_of(size > 0 and body(at, size), tag, bound))
    counts[tag] = counts[tag] + 1
    at = at + size
  end
  if tags ~= 0 then return nil end
  tree:add(f.burst, body(start, at - start)):set_text(table.concat(texts, " "))
  return at
end

local function add_bursts(tree, body, count, bound)
  local counts, at = { [0] = 0, 0, 0, 0 }, 0
  for first = 0, count - 1, BURST do
    at = add_burst(tree, body, at, math.min(BURST, count - first), bound, counts)
    if not at then return false end
  end
  for tag, field in ipairs({ f.tag1, f.tag2, f.tag3 }) do tree:add(field, counts[tag]):set_generated() end
  tree:add(f.tag0, counts[0]):set_generated()
  return at == body:len()
end

function tosfloat.dissector(buffer, packet, root)
  packet.cols.protocol = "tosfloat"
  local tree, size = root:add(tosfloat, buffer()), buffer:reported_len()
  local wrong = buffer:len() < size and cut or malformed
  if buffer:len() < SHIM_SIZE then
    tree:add_proto_expert_info(wrong)
    return buffer:len()
  end
  local count, bound, flags = buffer(0, 2):uint(), buffer(2, 1):uint(), buffer(3, 1):uint()
  packet.cols.info = string.format("%d values in %d bytes, bound 2^-%d", count, size, bound)
  tree:add(f.count, buffer(0, 2))
  tree:add(f.bound, buffer(2, 1))
  local branch = tree:add(f.flags, buffer(3, 1))
  branch:add(f.little_endian, buffer(3, 1))
  branch:add(f.with_message, buffer(3, 1))
  local at = SHIM_SIZE
  if math.floor(flags / 2) % 2 == 1 and buffer:len() >= at + MESSAGE_SIZE then
    tree:add(f.message, buffer(at, MESSAGE_SIZE))
    at = at + MESSAGE_SIZE
  end
  if at == buffer:len() or not add_bursts(tree, buffer(at):tvb(), count, bound) then
    tree:add_proto_expert_info(wrong)
  end
  return buffer:len()
end

local function is_compressed(buffer, packet, root)
  local mark = dscp()
  if not mark or mark.value ~= DSCP then return false end
  tosfloat.dissector(buffer, packet, root)
  return true
end

tosfloat:register_heuristic("udp", is_compressed)
