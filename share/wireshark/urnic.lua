-- SPDX-License-Identifier: BSD-3-Clause
--
-- Wireshark's dissector for urnic's own packets (doc/reference/wire.md): selective acknowledgements,
-- writes with two addresses, words of a receiver of UC, flows with their messages, and remote memory
-- access in them. All other packets go to Wireshark's own dissector of RoCEv2.
--
--   wireshark -X lua_script:urnic.lua FILE
--
-- or copy the file to the folder of personal Lua plugins (Help, About, Folders).

local PORT = 4791
local BTH, ICRC = 12, 4
local AM_TOP = 0xC0 -- top byte of a queue number whose top two bits say: endpoint of remote memory access

local OPCODES = {
	[0xC0] = "RC SACK",
	[0xC1] = "Flow Data",
	[0xC2] = "Flow Ack",
	[0xC3] = "Flow Reset",
	[0xC4] = "RC WRITE Last, two addresses",
	[0xC5] = "RC WRITE Last with Immediate, two addresses",
	[0xC6] = "UC Word",
}
local SEGMENTS = { [0] = "whole message", [1] = "part of a message", [2] = "void", [3] = "no part follows" }
local KINDS = {
	[1] = "Write", [2] = "Write Reply", [3] = "Read", [4] = "Read Reply", [5] = "Error",
	[6] = "Atomic", [7] = "Atomic Reply", [8] = "Tagged Write", [9] = "Tagged Read",
	[10] = "Tagged Data", [11] = "Tagged Data of a Read", [12] = "Tagged Done",
	[13] = "Tagged Error", [14] = "Tagged Cancel", [15] = "Write, a reply for several",
}
local ATOMICS = { [3] = "fetch and add", [4] = "swap", [5] = "compare and swap" }
-- The words of lib/abi/am_codes.h and lib/abi/msg_codes.h, which have their meanings.
local AM_CODES = {
	[0] = "done", [1] = "bad-command", [2] = "local", [3] = "bad-key", [4] = "range", [5] = "rights",
	[6] = "unregistered", [7] = "no-endpoint", [8] = "no-node", [9] = "unreachable", [10] = "restarted",
	[11] = "busy", [12] = "no-reply", [13] = "bad-packet", [14] = "align", [15] = "addressee",
	[16] = "tag-used", [17] = "tag-retired", [18] = "scattered",
}
local MSG_CODES = {
	[0] = "idle", [1] = "pending", [2] = "done", [3] = "queue-full", [4] = "no-node", [5] = "no-queue",
	[6] = "too-long", [7] = "not-permitted", [8] = "unreachable", [9] = "bad-doorbell", [10] = "busy",
	[11] = "restarted",
}
local DONE = 2 -- of MSG_CODES

local urnic = Proto("urnic", "urnic over RoCEv2")
local f = {}

local function field(name, kind, text, ...)
	f[name] = ProtoField[kind]("urnic." .. name, text, ...)
end

field("opcode", "uint8", "Opcode", base.HEX, OPCODES)
field("pad", "uint8", "Pad", base.DEC, nil, 0x30)
field("pkey", "uint16", "P_Key", base.HEX)
field("dqpn", "uint24", "Destination QP", base.HEX)
field("ackreq", "bool", "Acknowledge request", 8, nil, 0x80)
field("psn", "uint24", "PSN", base.DEC)
field("icrc", "uint32", "ICRC", base.HEX)
field("payload", "bytes", "Payload")
-- RC
field("syndrome", "uint8", "Syndrome", base.HEX)
field("msn", "uint24", "MSN", base.DEC)
field("sack.version", "uint8", "Version", base.DEC)
field("sack.ranges", "uint8", "Ranges", base.DEC)
field("sack.expected", "uint24", "Expected PSN", base.DEC)
field("sack.first", "uint24", "Kept from PSN", base.DEC)
field("sack.end", "uint24", "... up to, and not, PSN", base.DEC)
field("sack.bitmap", "bytes", "Kept behind the expected PSN")
field("va", "uint64", "Virtual address", base.HEX)
field("rkey", "uint32", "Remote key", base.HEX)
field("length", "uint32", "DMA length", base.DEC)
field("imm", "uint32", "Immediate data", base.HEX)
-- flows
field("flow.epoch", "uint64", "Epoch", base.HEX)
field("flow.start", "uint32", "Start of the receiver, or age of the epoch in ms", base.DEC)
field("flow.engine", "uint8", "Engine", base.DEC, nil, 0x0F)
field("flow.first", "bool", "To the node's first engine", 8, nil, 0x10)
field("flow.oldest", "uint24", "Oldest PSN not acknowledged", base.DEC)
field("flow.missing", "uint24", "First PSN that has not come", base.DEC)
field("flow.queue", "uint64", "Queue", base.HEX)
field("flow.source", "uint64", "Source queue", base.HEX)
field("flow.length", "uint32", "Length of the message", base.DEC)
field("flow.offset", "uint32", "Offset", base.DEC)
field("flow.id", "uint32", "Number of the message", base.DEC)
field("flow.bytes", "uint16", "Bytes", base.DEC)
field("flow.kind", "uint8", "Kind", base.DEC, SEGMENTS)
field("flow.holes", "bool", "Packets came ahead", 8, nil, 0x01)
field("flow.marked", "bool", "Congestion was seen", 8, nil, 0x02)
field("flow.has_room", "bool", "Room follows", 8, nil, 0x04)
field("flow.refused", "uint8", "Packets with refused messages", base.DEC)
field("flow.age", "uint16", "Age of the node, ms", base.DEC)
field("flow.bitmap", "bytes", "Packets that came, by PSN modulo 256")
field("flow.refused_psn", "uint24", "PSN of a refused message", base.DEC)
field("flow.codes", "bytes", "Codes by segment")
field("flow.code", "uint8", "Refused, because", base.DEC, MSG_CODES, 0x7F)
field("flow.room", "uint16", "Bytes taken behind the flow header", base.DEC)
-- remote memory access
field("am.kind", "uint8", "Kind", base.DEC, KINDS)
field("am.code", "uint8", "Reason", base.DEC, AM_CODES, 0x7F)
field("am.maybe", "bool", "Memory may have been changed all the same", 8, nil, 0x80)
field("am.more", "uint16", "Further writes answered", base.DEC)
field("am.length", "uint32", "Bytes of memory", base.DEC)
field("am.tag", "uint64", "Tag", base.HEX)
field("am.addr", "uint64", "Address, or bytes before these", base.HEX)
field("am.key", "uint64", "Key, or endpoint", base.HEX)
field("am.op", "uint8", "Operation", base.DEC, ATOMICS)
field("am.value", "uint64", "Value", base.HEX)
field("am.compare", "uint64", "Compared with", base.HEX)
field("am.old", "uint64", "Value before", base.HEX)
field("am.total", "uint32", "Bytes of the transfer", base.DEC)
field("am.every", "uint8", "Packets for one reply (255: one for the transfer)", base.DEC)
field("am.further", "uint64", "Tag of a further write", base.HEX)
field("am.data", "bytes", "Data")

local short = ProtoExpert.new("urnic.short", "The packet is shorter than its headers say", expert.group.MALFORMED,
			      expert.severity.ERROR)
local fields = {}
for _, one in pairs(f) do
	fields[#fields + 1] = one
end
urnic.fields = fields
urnic.experts = { short }

-- True when `n` bytes are there from `at` on; else the tree says that they are missing.
local function has(buf, at, n, tree)
	if at + n <= buf:len() then
		return true
	end
	tree:add_proto_expert_info(short)
	return false
end

-- Add fields in a row, {name, bytes} each; a name may be given twice with 0 bytes between. returns: place behind them
local function row(buf, at, tree, list)
	for _, one in ipairs(list) do
		if one[1] then
			tree:add(f[one[1]], buf(at, one[2]))
		end
		at = at + one[2]
	end
	return at
end

local function bth(buf, tree)
	local t = tree:add(urnic, buf(0, BTH), "Base transport header")

	t:add(f.opcode, buf(0, 1))
	t:add(f.pad, buf(1, 1))
	t:add(f.pkey, buf(2, 2))
	t:add(f.dqpn, buf(5, 3))
	t:add(f.ackreq, buf(8, 1))
	t:add(f.psn, buf(9, 3))
end

local function add_payload(buf, at, tree)
	local pad = bit.rshift(bit.band(buf(1, 1):uint(), 0x30), 4)
	local n = buf:len() - ICRC - pad - at

	if n > 0 then
		tree:add(f.payload, buf(at, n))
	end
end

-- ---- queue pairs

local function sack(buf, tree)
	if not has(buf, BTH, 4 + 72 + ICRC, tree) then
		return "short"
	end
	local t = tree:add(urnic, buf(BTH, 76), "Selective acknowledgement")
	local at = row(buf, BTH, t, { { "syndrome", 1 }, { "msn", 3 }, { "sack.version", 1 }, { "sack.ranges", 1 }, { nil, 3 } })
	local expected = buf(at, 3):uint()

	at = row(buf, at, t, { { "sack.expected", 3 } })
	for i = 0, 3 do
		if i < buf(BTH + 5, 1):uint() then
			row(buf, at, t, { { nil, 1 }, { "sack.first", 3 }, { nil, 1 }, { "sack.end", 3 } })
		end
		at = at + 8
	end
	t:add(f["sack.bitmap"], buf(at, 32))
	return "expected PSN " .. expected
end

local function two_addresses(buf, tree, op)
	local n = op == 0xC5 and 20 or 16

	if not has(buf, BTH, n + ICRC, tree) then
		return "short"
	end
	local t = tree:add(urnic, buf(BTH, n), "Address of this packet")
	local at = row(buf, BTH, t, { { "va", 8 }, { "rkey", 4 }, { "length", 4 } })

	if op == 0xC5 then
		at = row(buf, at, t, { { "imm", 4 } })
	end
	add_payload(buf, at, tree)
	return "PSN " .. buf(9, 3):uint()
end

-- What a receiver of UC tells its sender.
local function uc_word(buf, tree)
	if not has(buf, BTH, 4 + ICRC, tree) then
		return "short"
	end
	local t = tree:add(urnic, buf(BTH, 4), "Word of the receiver")

	row(buf, BTH, t, { { "syndrome", 1 }, { "msn", 3 } })
	return "PSN " .. buf(9, 3):uint() .. " is due, window of " .. buf(BTH + 1, 3):uint() .. " packets"
end

-- ---- remote memory access

-- Headers behind that of a kind, {name, bytes} each.
local HEADS = {
	[6] = { { "am.op", 1 }, { nil, 7 }, { "am.value", 8 }, { "am.compare", 8 } },
	[7] = { { "am.old", 8 } },
	[15] = { { "am.total", 4 }, { "am.every", 1 }, { nil, 3 } },
}
local HEAD_BYTES = { [6] = 24, [7] = 8, [15] = 8 }

-- Tags of further writes that a reply answers. returns: place behind them
local function further(buf, at, tree)
	for _ = 1, buf(2, 2):uint() do
		if at + 8 > buf:len() then
			tree:add_proto_expert_info(short)
			return at
		end
		at = row(buf, at, tree, { { "am.further", 8 } })
	end
	return at
end

local function am(buf, tree)
	if not has(buf, 0, 32, tree) then
		return "short"
	end
	local kind = buf(0, 1):uint()
	local name = KINDS[kind] or ("kind " .. kind)
	local t = tree:add(urnic, buf(0), "Remote memory access: " .. name)

	local at = row(buf, 0, t, { { "am.kind", 1 }, { "am.code", 1 }, { "am.more", 2 }, { "am.length", 4 }, { "am.tag", 8 },
				    { "am.addr", 8 }, { "am.key", 8 } })
	local code = bit.band(buf(1, 1):uint(), 0x7F)

	t:add(f["am.maybe"], buf(1, 1))
	if HEADS[kind] then
		if not has(buf, at, HEAD_BYTES[kind], t) then
			return "short"
		end
		at = row(buf, at, t, HEADS[kind])
	elseif kind == 2 then
		at = further(buf, at, t)
	end
	if buf:len() > at then
		t:add(f["am.data"], buf(at))
	end
	return name .. (code > 0 and " (" .. (AM_CODES[code] or "code " .. code) .. ")" or "")
end

-- ---- flows

local function flow_header(buf, tree, answers)
	local t = tree:add(urnic, buf(BTH, 16), "Flow header")

	row(buf, BTH, t, { { "flow.epoch", 8 }, { "flow.start", 4 } })
	t:add(f["flow.engine"], buf(BTH + 12, 1))
	t:add(f["flow.first"], buf(BTH + 12, 1))
	t:add(f[answers and "flow.missing" or "flow.oldest"], buf(BTH + 13, 3))
end

-- A segment. returns: place behind it and what it holds; nil: it is too short
local function segment(buf, at, tree, stop)
	if at + 20 > stop then
		tree:add_proto_expert_info(short)
		return nil
	end
	local n, kind = buf(at + 16, 2):uint(), buf(at + 18, 1):uint()
	local head = kind % 2 == 1 and 32 or 20 -- those of long messages say more

	if at + head > stop then
		tree:add_proto_expert_info(short)
		return nil
	end
	local t = tree:add(urnic, buf(at, head), "Segment: " .. (SEGMENTS[kind] or ("kind " .. kind)))
	local what = SEGMENTS[kind] or "?"

	row(buf, at, t, { { "flow.queue", 8 }, { "flow.source", 8 }, { "flow.bytes", 2 }, { "flow.kind", 1 } })
	if head == 32 then
		row(buf, at + 20, t, { { "flow.length", 4 }, { "flow.offset", 4 }, { "flow.id", 4 } })
	end
	if at + head + n > stop then
		tree:add_proto_expert_info(short)
		return nil
	end
	if n > 0 and kind == 0 and buf(at, 1):uint() >= AM_TOP and buf(at + 8, 1):uint() >= AM_TOP then
		what = am(buf(at + head, n):tvb(), t)
	elseif n > 0 then
		t:add(f.payload, buf(at + head, n))
	end
	return at + head + n + (-n) % 4, what
end

local function flow_data(buf, tree)
	local at, stop, said = BTH + 16, buf:len() - ICRC, {}

	flow_header(buf, tree, false)
	while at and at < stop and #said < 16 do
		local what

		at, what = segment(buf, at, tree, stop)
		said[#said + 1] = what
	end
	return "PSN " .. buf(9, 3):uint() .. ": " .. table.concat(said, ", ")
end

local function flow_ack(buf, tree)
	flow_header(buf, tree, true)
	if not has(buf, BTH + 16, 36 + ICRC, tree) then
		return "short"
	end
	local at = BTH + 16
	local flags, refused, why = buf(at, 1):uint(), buf(at + 1, 1):uint(), nil
	local t = tree:add(urnic, buf(at, buf:len() - ICRC - at), "Acknowledgement")

	t:add(f["flow.holes"], buf(at, 1))
	t:add(f["flow.marked"], buf(at, 1))
	t:add(f["flow.has_room"], buf(at, 1))
	at = row(buf, at + 1, t, { { "flow.refused", 1 }, { "flow.age", 2 }, { "flow.bitmap", 32 } })
	for _ = 1, refused do
		if not has(buf, at, 20 + ICRC, tree) then
			return "short"
		end
		at = row(buf, at, t, { { nil, 1 }, { "flow.refused_psn", 3 }, { "flow.codes", 16 } })
		for i = at - 16, at - 1 do
			local code = bit.band(buf(i, 1):uint(), 0x7F)

			-- Segments that the packet does not have are 0.
			if code ~= DONE and code ~= 0 then
				t:add(f["flow.code"], buf(i, 1))
				why = why or MSG_CODES[code] or "code " .. code
			end
		end
	end
	if bit.band(flags, 4) ~= 0 and has(buf, at, 4 + ICRC, tree) then
		row(buf, at, t, { { "flow.room", 2 } })
	end
	return "up to PSN " .. buf(BTH + 13, 3):uint() .. (refused > 0 and ", " .. refused .. " refused" or "") ..
	       (why and " (" .. why .. ")" or "")
end

local function flow_reset(buf, tree)
	flow_header(buf, tree, true)
	return "start " .. buf(BTH + 8, 4):uint()
end

local ways = { [0xC0] = sack, [0xC1] = flow_data, [0xC2] = flow_ack, [0xC3] = flow_reset, [0xC4] = two_addresses,
	       [0xC5] = two_addresses, [0xC6] = uc_word }

local ports = DissectorTable.get("udp.port")
local rocev2 = ports:get_dissector(PORT)

function urnic.dissector(buf, pinfo, root)
	local op = buf:len() >= BTH + ICRC and buf(0, 1):uint() or 0
	local way = ways[op]

	if not way or (op >= 0xC1 and op <= 0xC3 and buf:len() < BTH + 16 + ICRC) then
		return rocev2:call(buf, pinfo, root)
	end
	local tree = root:add(urnic, buf())

	pinfo.cols.protocol = "urnic"
	bth(buf, tree)
	pinfo.cols.info = OPCODES[op] .. ", " .. way(buf, tree, op)
	tree:add(f.icrc, buf(buf:len() - ICRC, ICRC))
	return buf:len()
end

ports:add(PORT, urnic)
