//! Programs for the kernel's eBPF machine, put together instruction by instruction.
//!
//! As much of RFC 9669 ("BPF Instruction Set Architecture") as the programs here need.
//! They are too small, and depend too much on the port they are for, to be worth a second
//! compiler at build time.

/// One instruction (RFC 9669, section 3): opcode, registers, offset, immediate value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    opcode: u8,
    /// The destination in the lower four bits, the source in the upper four; on a
    /// machine of the other byte order the other way round.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    /// What a call returns, and the program.
    R0 = 0,
    /// The first argument of a call.
    R1 = 1,
    R2 = 2,
    R3 = 3,
    R4 = 4,
    R5 = 5,
    /// Kept across calls.
    R6 = 6,
    R7 = 7,
    R8 = 8,
    R9 = 9,
    /// The end of the stack; what is on it has negative offsets.
    Frame = 10,
}

/// How many bytes an instruction moves (RFC 9669, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// Four.
    Word = 0x00,
    /// Two.
    Half = 0x08,
    /// One.
    Byte = 0x10,
}

/// When a jump is taken (RFC 9669, section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum If {
    Equal = 0x10,
    /// Without sign.
    Greater = 0x20,
    /// A bit is set in both.
    AnyBit = 0x40,
    NotEqual = 0x50,
}

/// A place to jump to, further down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(usize);

// Instruction classes and modes, RFC 9669, sections 3 to 5.
const LOAD_IMMEDIATE_64: u8 = 0x18;
const LOAD: u8 = 0x61;
const STORE_IMMEDIATE: u8 = 0x62;
const STORE: u8 = 0x63;
const ATOMIC_64: u8 = 0xdb;
const ADD_IMMEDIATE: u8 = 0x07;
const MOVE_IMMEDIATE: u8 = 0xb7;
const MOVE: u8 = 0xbf;
const JUMP: u8 = 0x05;
const FROM_REGISTER: u8 = 0x08;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// The immediate of [`LOAD_IMMEDIATE_64`] is a map's descriptor (section 5.4).
const MAP_BY_DESCRIPTOR: u8 = 1;

/// A program under construction.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    instructions: Vec<Instruction>,
    jumps: Vec<(usize, Label)>,
    /// Where each label was placed.
    labels: Vec<usize>,
}

impl Assembler {
    /// A label that is not placed yet.
    pub(crate) fn label(&mut self) -> Label {
        self.labels.push(0);
        Label(self.labels.len() - 1)
    }

    /// The next instruction is what `label` means.
    pub(crate) fn place(&mut self, label: Label) {
        let here = self.instructions.len();
        if let Some(place) = self.labels.get_mut(label.0) {
            *place = here;
        }
    }

    pub(crate) fn set(&mut self, to: Register, value: i32) {
        self.push(MOVE_IMMEDIATE, to as u8, 0, 0, value);
    }

    pub(crate) fn copy(&mut self, to: Register, from: Register) {
        self.push(MOVE, to as u8, from as u8, 0, 0);
    }

    pub(crate) fn add(&mut self, to: Register, value: i32) {
        self.push(ADD_IMMEDIATE, to as u8, 0, 0, value);
    }

    /// The address of what lies at this offset on the stack.
    pub(crate) fn address(&mut self, to: Register, at: i16) {
        self.copy(to, Register::Frame);
        self.add(to, at.into());
    }

    pub(crate) fn load(&mut self, width: Width, to: Register, from: Register, at: i16) {
        self.push(LOAD | width as u8, to as u8, from as u8, at, 0);
    }

    /// Stores a register on the stack.
    pub(crate) fn store(&mut self, width: Width, at: i16, from: Register) {
        self.push(STORE | width as u8, Register::Frame as u8, from as u8, at, 0);
    }

    /// Stores a value on the stack.
    pub(crate) fn store_value(&mut self, width: Width, at: i16, value: i32) {
        self.push(STORE_IMMEDIATE | width as u8, Register::Frame as u8, 0, at, value);
    }

    /// Adds a register to eight bytes in memory, atomically.
    pub(crate) fn add_to(&mut self, to: Register, at: i16, from: Register) {
        self.push(ATOMIC_64, to as u8, from as u8, at, 0);
    }

    /// A map for a call, by its descriptor.
    pub(crate) fn map(&mut self, to: Register, descriptor: i32) {
        self.push(LOAD_IMMEDIATE_64, to as u8, MAP_BY_DESCRIPTOR, 0, descriptor);
        self.push(0, 0, 0, 0, 0);
    }

    pub(crate) fn jump(&mut self, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.push(JUMP, 0, 0, 0, 0);
    }

    pub(crate) fn jump_if(&mut self, left: Register, when: If, right: i32, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.push(JUMP | when as u8, left as u8, 0, 0, right);
    }

    pub(crate) fn jump_if_registers(
        &mut self,
        left: Register,
        when: If,
        right: Register,
        to: Label,
    ) {
        self.jumps.push((self.instructions.len(), to));
        self.push(JUMP | FROM_REGISTER | when as u8, left as u8, right as u8, 0, 0);
    }

    /// Calls a function of the kernel by its number in `linux/bpf.h`.
    pub(crate) fn call(&mut self, function: i32) {
        self.push(CALL, 0, 0, 0, function);
    }

    pub(crate) fn exit(&mut self) {
        self.push(EXIT, 0, 0, 0, 0);
    }

    /// The program. Jumps to labels that were never placed go to its beginning, which
    /// the kernel refuses.
    pub(crate) fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let target = self.labels.get(label.0).copied().unwrap_or_default();
            // Programs here have some hundred instructions at most.
            let distance = target as i64 - at as i64 - 1;
            if let Some(jump) = self.instructions.get_mut(at) {
                jump.offset = i16::try_from(distance).unwrap_or(-1);
            }
        }
        self.instructions
    }

    fn push(&mut self, opcode: u8, to: u8, from: u8, offset: i16, immediate: i32) {
        let registers =
            if cfg!(target_endian = "little") { to | from << 4 } else { to << 4 | from };
        self.instructions.push(Instruction { opcode, registers, offset, immediate });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_lead_to_their_labels() {
        let mut program = Assembler::default();
        let (first, end) = (program.label(), program.label());
        program.jump_if(Register::R1, If::Equal, 7, end);
        program.map(Register::R1, 3);
        program.jump_if_registers(Register::R1, If::NotEqual, Register::R2, first);
        program.place(first);
        program.set(Register::R0, -1);
        program.place(end);
        program.exit();
        let offsets: Vec<_> = program.finish().iter().map(|i| (i.opcode, i.offset)).collect();
        assert_eq!(offsets, [(0x15, 4), (0x18, 0), (0, 0), (0x5d, 0), (0xb7, 0), (0x95, 0)]);
    }
}
