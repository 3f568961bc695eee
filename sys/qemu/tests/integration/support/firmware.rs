//! A guest in some bytes: firmware that says a word on the serial console and then does what it
//! is told there, letter by letter.
//!
//! - `p`: it tells of its panic (the device `pvpanic`, port 0x505).
//! - `r`: it resets the machine (port 0xcf9).
//! - `o`: it turns the machine off, as ACPI does (ICH9 datasheet, 13.8.3.3).
//! - anything else is sent back.

/// What it says first.
pub(crate) const WORD: &str = "suimon guest\r\n";

const IMAGE_BYTES: usize = 64 << 10;
/// Where the CPU starts, and where the program lies.
const START_AT: usize = 0xfff0;
const PROGRAM_AT: usize = 0xf000;

/// Sends the accumulator to a port.
fn out(port: u16, value: u8) -> Vec<u8> {
    let [low, high] = port.to_le_bytes();
    vec![0xba, low, high, 0xb0, value, 0xee]
}

fn out_long(port: u16, value: u32) -> Vec<u8> {
    let [low, high] = port.to_le_bytes();
    let mut code = vec![0xba, low, high, 0x66, 0xb8];
    code.extend(value.to_le_bytes());
    code.extend([0x66, 0xef]);
    code
}

/// Writes a register of the chip that has the power's registers (device 31, function 0).
fn write_register(register: u32, value: u32) -> Vec<u8> {
    [out_long(0xcf8, 0x8000_f800 | register), out_long(0xcfc, value)].concat()
}

/// If the letter came, does this; it must not change the accumulator otherwise.
fn on(letter: u8, what: &[u8]) -> Vec<u8> {
    let length = u8::try_from(what.len()).unwrap();
    [&[0x3c, letter, 0x75, length], what].concat()
}

fn program() -> Vec<u8> {
    let mut code: Vec<u8> = WORD.bytes().flat_map(|byte| out(0x3f8, byte)).collect();
    let wait_at = code.len();
    // Waits for a letter, and reads it.
    code.extend([0xba, 0xfd, 0x03, 0xec, 0xa8, 0x01, 0x74, 0xf8]);
    code.extend([0xba, 0xf8, 0x03, 0xec]);
    code.extend(on(b'p', &out(0x505, 1)));
    code.extend(on(b'r', &out(0xcf9, 6)));
    let mut off = write_register(0x40, 0x601);
    off.extend(write_register(0x44, 0x80));
    // SLP_EN with the type of sleep that is "off", to the word at PMBASE + 4.
    off.extend([0xba, 0x04, 0x06, 0xb8, 0x00, 0x20, 0xef]);
    code.extend(on(b'o', &off));
    code.extend([0xba, 0xf8, 0x03, 0xee]);
    let back = wait_at as isize - (code.len() + 3) as isize;
    let [low, high] = i16::try_from(back).unwrap().to_le_bytes();
    code.extend([0xe9, low, high]);
    code
}

/// All of it.
pub(crate) fn image() -> Vec<u8> {
    let mut image = vec![0; IMAGE_BYTES];
    let program = program();
    image[PROGRAM_AT..PROGRAM_AT + program.len()].copy_from_slice(&program);
    let jump = PROGRAM_AT as isize - (START_AT + 3) as isize;
    let [low, high] = i16::try_from(jump).unwrap().to_le_bytes();
    image[START_AT..START_AT + 3].copy_from_slice(&[0xe9, low, high]);
    image
}

/// A sector that says the word when a BIOS starts it, and stops.
pub(crate) fn boot_sector() -> Vec<u8> {
    let mut code: Vec<u8> = WORD.bytes().flat_map(|byte| out(0x3f8, byte)).collect();
    code.extend([0xf4, 0xeb, 0xfd]);
    code.resize(510, 0);
    code.extend([0x55, 0xaa]);
    code
}
