//! Assembler for eBPF programs.
//!
//! Implements the part of RFC 9669 ("BPF Instruction Set Architecture") that the programs of
//! `sys/netdev` need. These programs are short and depend on the port they are for, which does not
//! justify a second compiler at build time.

/// Instruction (RFC 9669, section 3): opcode, registers, offset, immediate value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct EbpfInstruction {
    opcode: u8,
    /// Destination register in the lower four bits, source in the upper four; reversed on
    /// big-endian machines.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// Register of the eBPF machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// Return value of a call and of the program.
    R0 = 0,
    /// First argument of a call.
    R1 = 1,
    /// Second argument of a call.
    R2 = 2,
    /// Third argument of a call.
    R3 = 3,
    /// Fourth argument of a call.
    R4 = 4,
    /// Fifth argument of a call.
    R5 = 5,
    /// First callee-saved register (`R6`): preserved across calls.
    R6 = 6,
    /// Callee-saved register (`R7`).
    R7 = 7,
    /// Callee-saved register (`R8`).
    R8 = 8,
    /// Callee-saved register (`R9`).
    R9 = 9,
    /// Frame pointer (read-only): end of the stack, whose contents have negative offsets.
    Frame = 10,
}

/// Number of bytes that an instruction moves (RFC 9669, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Four bytes (`BPF_W`).
    Word = 0x00,
    /// Two bytes (`BPF_H`).
    Half = 0x08,
    /// One byte (`BPF_B`).
    Byte = 0x10,
}

/// Condition of a jump (RFC 9669, section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpCondition {
    /// Jumps if equal (`BPF_JEQ`).
    Equal = 0x10,
    /// Jumps if greater, as unsigned values (`BPF_JGT`).
    Greater = 0x20,
    /// Jumps if at least one bit is set in both values (`BPF_JSET`).
    AnyBit = 0x40,
    /// Jumps if not equal (`BPF_JNE`).
    NotEqual = 0x50,
}

/// Position in a program to which forward jumps lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

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
/// Source register number that marks the immediate of [`LOAD_IMMEDIATE_64`] as a map's descriptor
/// (section 5.4).
const MAP_BY_DESCRIPTOR: u8 = 1;

/// Program that is being assembled, instruction by instruction.
#[derive(Debug, Default)]
pub struct Assembler {
    instructions: Vec<EbpfInstruction>,
    jumps: Vec<(usize, Label)>,
    /// Instruction index of each label.
    labels: Vec<usize>,
}

impl Assembler {
    /// Creates a label without a position.
    pub fn label(&mut self) -> Label {
        self.labels.push(0);
        Label(self.labels.len() - 1)
    }

    /// Sets the position of `label` to the next instruction.
    pub fn bind(&mut self, label: Label) {
        let position = self.instructions.len();
        if let Some(target) = self.labels.get_mut(label.0) {
            *target = position;
        }
    }

    /// Sets a register to a constant, sign-extended to 64 bits.
    pub fn set(&mut self, to: Register, value: i32) {
        self.push(MOVE_IMMEDIATE, to as u8, 0, 0, value);
    }

    /// Copies `from` to `to`.
    pub fn copy(&mut self, to: Register, from: Register) {
        self.push(MOVE, to as u8, from as u8, 0, 0);
    }

    /// Adds a constant, sign-extended to 64 bits, to a register.
    pub fn add(&mut self, to: Register, value: i32) {
        self.push(ADD_IMMEDIATE, to as u8, 0, 0, value);
    }

    /// Sets a register to the address of a stack location, `offset` bytes (negative) from the end
    /// of the stack.
    pub fn set_stack_address(&mut self, to: Register, offset: i16) {
        self.copy(to, Register::Frame);
        self.add(to, offset.into());
    }

    /// Loads a register from memory, `offset` bytes after the address in `from`. Upper bits are
    /// zero.
    pub fn load(&mut self, width: Width, to: Register, from: Register, offset: i16) {
        self.push(LOAD | width as u8, to as u8, from as u8, offset, 0);
    }

    /// Stores a register on the stack, `offset` bytes (negative) from its end.
    pub fn store(&mut self, width: Width, offset: i16, from: Register) {
        self.push(STORE | width as u8, Register::Frame as u8, from as u8, offset, 0);
    }

    /// Stores a constant on the stack, `offset` bytes (negative) from its end.
    pub fn store_value(&mut self, width: Width, offset: i16, value: i32) {
        self.push(STORE_IMMEDIATE | width as u8, Register::Frame as u8, 0, offset, value);
    }

    /// Adds `from` atomically to the eight bytes in memory at `offset` bytes after the address in
    /// `to`.
    pub fn atomic_add(&mut self, to: Register, offset: i16, from: Register) {
        self.push(ATOMIC_64, to as u8, from as u8, offset, 0);
    }

    /// Sets a register to a map, given by its descriptor in the loading process, for use as the
    /// argument of a call.
    pub fn set_map(&mut self, to: Register, descriptor: i32) {
        self.push(LOAD_IMMEDIATE_64, to as u8, MAP_BY_DESCRIPTOR, 0, descriptor);
        self.push(0, 0, 0, 0, 0);
    }

    /// Jumps unconditionally to a label.
    pub fn jump(&mut self, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.push(JUMP, 0, 0, 0, 0);
    }

    /// Jumps to a label if a register and a constant satisfy a condition.
    pub fn jump_if(&mut self, left: Register, condition: JumpCondition, right: i32, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.push(JUMP | condition as u8, left as u8, 0, 0, right);
    }

    /// Jumps to a label if two registers satisfy a condition.
    pub fn jump_if_registers(
        &mut self,
        left: Register,
        condition: JumpCondition,
        right: Register,
        to: Label,
    ) {
        self.jumps.push((self.instructions.len(), to));
        self.push(JUMP | FROM_REGISTER | condition as u8, left as u8, right as u8, 0, 0);
    }

    /// Calls a helper function of the kernel by its number in `linux/bpf.h`.
    pub fn call(&mut self, function: i32) {
        self.push(CALL, 0, 0, 0, function);
    }

    /// Ends the program; `R0` is its result.
    pub fn exit(&mut self) {
        self.push(EXIT, 0, 0, 0, 0);
    }

    /// Returns the program. Jumps to labels without a position go to its beginning, which the
    /// kernel rejects.
    pub fn finish(mut self) -> Vec<EbpfInstruction> {
        for (index, label) in self.jumps {
            let target = self.labels.get(label.0).copied().unwrap_or_default();
            // The programs have some hundred instructions at most.
            let distance = target as i64 - index as i64 - 1;
            if let Some(jump) = self.instructions.get_mut(index) {
                jump.offset = i16::try_from(distance).unwrap_or(-1);
            }
        }
        self.instructions
    }

    fn push(&mut self, opcode: u8, to: u8, from: u8, offset: i16, immediate: i32) {
        let registers =
            if cfg!(target_endian = "little") { to | from << 4 } else { to << 4 | from };
        self.instructions.push(EbpfInstruction { opcode, registers, offset, immediate });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_lead_to_their_labels() {
        let mut program = Assembler::default();
        let (first, end) = (program.label(), program.label());
        program.jump_if(Register::R1, JumpCondition::Equal, 7, end);
        program.set_map(Register::R1, 3);
        program.jump_if_registers(Register::R1, JumpCondition::NotEqual, Register::R2, first);
        program.bind(first);
        program.set(Register::R0, -1);
        program.bind(end);
        program.exit();
        let offsets: Vec<_> = program.finish().iter().map(|i| (i.opcode, i.offset)).collect();
        assert_eq!(offsets, [(0x15, 4), (0x18, 0), (0, 0), (0x5d, 0), (0xb7, 0), (0x95, 0)]);
    }
}
