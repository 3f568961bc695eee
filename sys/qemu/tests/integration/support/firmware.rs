//! Minimal guest: firmware that writes a greeting to the serial console and then executes
//! one-letter commands received there.
//!
//! - `p`: reports a panic (device `pvpanic`, port 0x505).
//! - `r`: resets the machine (port 0xcf9).
//! - `o`: turns the machine off through ACPI (ICH9 datasheet, 13.8.3.3).
//! - `w`: returns the letter. Then increments counters until another letter arrives: one in a
//!   register and one in each of [`HOT_PAGES`] pages of memory, equally often, and one in one of
//!   further pages, less often. The reply is `k` if the counters of register and hot pages are
//!   equal, and `l` if a write was lost.
//! - other letters are returned.

/// Greeting that the guest writes to its serial console.
pub(crate) const WORD: &str = "suimon guest\r\n";

/// Number of pages that command `w` writes continuously.
const HOT_PAGES: u16 = 8;
/// Real-mode segment of the hot pages.
const HOT_AT: u16 = 0x1000;
/// Real-mode segment of the first of the pages that are written less often.
const OTHERS_AT: u16 = 0x2000;
/// Real-mode segment after the last of the pages that are written less often.
const OTHERS_END: u16 = 0x9000;
/// Bit of the time-stamp counter whose change triggers a write to one of the further pages: about
/// every 6 ms. Slower than the test's migration copies, and fast enough that memory is copied in
/// several rounds.
const OTHERS_SHIFT: u8 = 24;

const IMAGE_BYTES: usize = 64 << 10;
/// Offset in the image at which the CPU starts.
const START_AT: usize = 0xfff0;
/// Offset of the program in the image.
const PROGRAM_AT: usize = 0xf000;

/// Returns code that writes a byte to a port.
fn write_port(port: u16, value: u8) -> Vec<u8> {
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

/// Returns code that writes a register of the LPC bridge (device 31, function 0), which contains
/// the power management registers.
fn write_register(register: u32, value: u32) -> Vec<u8> {
    [out_long(0xcf8, 0x8000_f800 | register), out_long(0xcfc, value)].concat()
}

/// Returns code that executes `code` if the letter was received. `code` must not change the
/// accumulator if other letters are to be checked afterwards.
fn on_letter(letter: u8, code: &[u8]) -> Vec<u8> {
    // The jump over it has a signed 8-bit distance.
    let length = i8::try_from(code.len()).unwrap();
    [&[0x3c, letter, 0x75, length as u8], code].concat()
}

fn with_word(opcode: &[u8], value: u16) -> Vec<u8> {
    [opcode, &value.to_le_bytes()].concat()
}

/// Returns code that executes `body` for each hot page, with the page's offset in SI: `body` reads
/// or writes `[si]`.
fn each_hot_page(body: &[u8]) -> Vec<u8> {
    // xor si, si
    let mut code = vec![0x31, 0xf6];
    let begin = code.len();
    code.extend(body);
    // add si, 4096; cmp si, the end; jb
    code.extend(with_word(&[0x81, 0xc6], 0x1000));
    code.extend(with_word(&[0x81, 0xfe], HOT_PAGES * 0x1000));
    let jump = i8::try_from(begin as isize - (code.len() + 2) as isize).unwrap();
    code.extend([0x72, jump as u8]);
    code
}

/// Returns the code of command `w` after the letter was returned. It contains no instruction that
/// makes QEMU flush its TLB, such as a change of CR3, so that a lost write remains lost.
fn count_until_a_letter_comes() -> Vec<u8> {
    // mov ax, segment; mov ds, ax; mov ax, segment; mov es, ax; xor ebx, ebx; xor ecx, ecx
    let mut code =
        [with_word(&[0xb8], HOT_AT), vec![0x8e, 0xd8], with_word(&[0xb8], OTHERS_AT)].concat();
    code.extend([0x8e, 0xc0, 0x66, 0x31, 0xdb, 0x66, 0x31, 0xc9]);
    // mov [si], ebx
    code.extend(each_hot_page(&[0x66, 0x89, 0x1c]));
    let begin = code.len();
    // inc ebx; inc dword [si] of each
    code.extend([0x66, 0x43]);
    code.extend(each_hot_page(&[0x66, 0xff, 0x04]));
    // rdtsc; shr eax, n; cmp al, cl; je over what follows
    let next = [
        // mov cl, al; mov ax, es; add ax, one page; cmp ax, the end; jb over the next
        vec![0x88, 0xc1, 0x8c, 0xc0],
        with_word(&[0x05], 0x100),
        with_word(&[0x3d], OTHERS_END),
        vec![0x72, 0x03],
        // mov ax, the first; mov es, ax; inc word es:[0]
        with_word(&[0xb8], OTHERS_AT),
        vec![0x8e, 0xc0, 0x26, 0xff, 0x06, 0x00, 0x00],
    ]
    .concat();
    code.extend([0x0f, 0x31, 0x66, 0xc1, 0xe8, OTHERS_SHIFT, 0x38, 0xc8, 0x74]);
    code.push(u8::try_from(next.len()).unwrap());
    code.extend(next);
    // mov dx, 0x3fd; in al, dx; test al, 1; jz begin
    code.extend([0xba, 0xfd, 0x03, 0xec, 0xa8, 0x01]);
    let jump = i8::try_from(begin as isize - (code.len() + 2) as isize).unwrap();
    code.extend([0x74, jump as u8]);
    // mov dx, 0x3f8; in al, dx; mov cl, 'k'
    code.extend([0xba, 0xf8, 0x03, 0xec, 0xb1, b'k']);
    // cmp ebx, [si]; je over the next; mov cl, 'l'
    code.extend(each_hot_page(&[0x66, 0x3b, 0x1c, 0x74, 0x02, 0xb1, b'l']));
    // mov al, cl, which is sent as the reply
    code.extend([0x88, 0xc8]);
    code
}

fn program() -> Vec<u8> {
    let mut code: Vec<u8> = WORD.bytes().flat_map(|byte| write_port(0x3f8, byte)).collect();
    let wait_at = code.len();
    // Waits for a letter and reads it.
    code.extend([0xba, 0xfd, 0x03, 0xec, 0xa8, 0x01, 0x74, 0xf8]);
    code.extend([0xba, 0xf8, 0x03, 0xec]);
    code.extend(on_letter(b'p', &write_port(0x505, 1)));
    code.extend(on_letter(b'r', &write_port(0xcf9, 6)));
    let mut power_off = write_register(0x40, 0x601);
    power_off.extend(write_register(0x44, 0x80));
    // SLP_EN with the sleep type "off", written to the word at PMBASE + 4.
    power_off.extend([0xba, 0x04, 0x06, 0xb8, 0x00, 0x20, 0xef]);
    code.extend(on_letter(b'o', &power_off));
    let count = [vec![0xba, 0xf8, 0x03, 0xee], count_until_a_letter_comes()].concat();
    code.extend(on_letter(b'w', &count));
    code.extend([0xba, 0xf8, 0x03, 0xee]);
    let jump = wait_at as isize - (code.len() + 3) as isize;
    let [low, high] = i16::try_from(jump).unwrap().to_le_bytes();
    code.extend([0xe9, low, high]);
    code
}

/// Returns the complete firmware image.
pub(crate) fn image() -> Vec<u8> {
    let mut image = vec![0; IMAGE_BYTES];
    let program = program();
    image[PROGRAM_AT..PROGRAM_AT + program.len()].copy_from_slice(&program);
    let jump = PROGRAM_AT as isize - (START_AT + 3) as isize;
    let [low, high] = i16::try_from(jump).unwrap().to_le_bytes();
    image[START_AT..START_AT + 3].copy_from_slice(&[0xe9, low, high]);
    image
}

/// Returns a boot sector that writes the greeting when a BIOS starts it, and halts.
pub(crate) fn boot_sector() -> Vec<u8> {
    let mut code: Vec<u8> = WORD.bytes().flat_map(|byte| write_port(0x3f8, byte)).collect();
    code.extend([0xf4, 0xeb, 0xfd]);
    code.resize(510, 0);
    code.extend([0x55, 0xaa]);
    code
}
