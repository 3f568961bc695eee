//! Command `vm console`: serial console of a guest in this terminal.

use std::io::{IsTerminal, Write};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use suimon_contract::Name;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::exit::Failure;
use crate::output::Context;

/// Key that ends the connection: Ctrl-], as in telnet and virsh.
const LEAVE: u8 = 0x1d;

/// Copies bytes between the terminal and the guest until either side ends, or the user types
/// Ctrl-]. Without a terminal, copies standard input to its end.
pub(crate) async fn run(context: &Context, vm: &Name) -> Result<(), Failure> {
    let console = context.client.open_vm_console(vm).await?;
    let raw = RawTerminal::enter()?;
    if raw.is_some() {
        eprint!("Connected to the console of vm/{vm}; Ctrl-] disconnects.\r\n");
    }
    let result = carry(console, raw.is_some()).await;
    drop(raw);
    Ok(result?)
}

async fn carry(
    console: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    is_terminal: bool,
) -> std::io::Result<()> {
    let (mut from_guest, mut to_guest) = tokio::io::split(console);
    let typed = async {
        let mut input = tokio::io::stdin();
        let mut bytes = [0; 1024];
        loop {
            let count = input.read(&mut bytes).await?;
            let typed = bytes.get(..count).unwrap_or_default();
            let escape = typed.iter().position(|byte| *byte == LEAVE).filter(|_| is_terminal);
            to_guest.write_all(typed.get(..escape.unwrap_or(count)).unwrap_or_default()).await?;
            if escape.is_some() {
                return Ok(());
            }
            if count == 0 {
                // Output of the guest is still copied after the end of standard input, for use in
                // scripts.
                return std::future::pending::<std::io::Result<()>>().await;
            }
        }
    };
    let console_output = async {
        let mut bytes = [0; 4096];
        loop {
            let count = from_guest.read(&mut bytes).await?;
            if count == 0 {
                return Ok(());
            }
            let mut output = std::io::stdout().lock();
            output.write_all(bytes.get(..count).unwrap_or_default())?;
            output.flush()?;
        }
    };
    tokio::select! {
        result = typed => result,
        result = console_output => result,
    }
}

/// Terminal in raw mode, restored when dropped.
struct RawTerminal(Termios);

impl RawTerminal {
    /// Enters raw mode; returns `None` if standard input is not a terminal.
    fn enter() -> std::io::Result<Option<Self>> {
        let input = std::io::stdin();
        if !input.is_terminal() {
            return Ok(None);
        }
        let before = tcgetattr(&input)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&input, OptionalActions::Now, &raw)?;
        Ok(Some(Self(before)))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
        eprintln!();
    }
}
