//! Minimal vhost-user back-end that QEMU accepts (QEMU's `docs/interop/vhost-user.rst`): it reports
//! its features and executes no other request.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const GET_FEATURES: u32 = 1;
const GET_VRING_BASE: u32 = 11;
const GET_PROTOCOL_FEATURES: u32 = 15;
const GET_QUEUE_NUM: u32 = 17;
const GET_CONFIG: u32 = 24;
/// Virtio features VERSION_1 and VHOST_USER_F_PROTOCOL_FEATURES.
const FEATURES: u64 = 1 << 32 | 1 << 30;
/// Protocol features: multiple queues, and configuration space.
const PROTOCOL_FEATURES: u64 = 1 | 1 << 9;
const HEADER: usize = 12;

/// Back-end that listens until the program ends, and counts its connections.
pub(crate) struct Backend {
    pub(crate) connections: Arc<AtomicUsize>,
}

impl Backend {
    pub(crate) fn listen(path: &Path) -> Self {
        let listener = listen_for_all(path);
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::Relaxed);
                std::thread::spawn(move || serve(stream));
            }
        });
        Self { connections }
    }
}

/// Listens on a socket to which users of VMs may connect, as they may to the daemon's sockets
/// through their group.
pub(crate) fn listen_for_all(path: &Path) -> UnixListener {
    use std::os::unix::fs::PermissionsExt;
    let listener = UnixListener::bind(path).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660)).unwrap();
    listener
}

fn serve(mut stream: UnixStream) -> Option<()> {
    loop {
        let mut header = [0; HEADER];
        stream.read_exact(&mut header).ok()?;
        let word =
            |offset: usize| u32::from_le_bytes(header[offset..offset + 4].try_into().unwrap());
        let mut payload = vec![0; word(8) as usize];
        stream.read_exact(&mut payload).ok()?;
        let answer = match word(0) {
            GET_FEATURES => FEATURES.to_le_bytes().to_vec(),
            GET_PROTOCOL_FEATURES => PROTOCOL_FEATURES.to_le_bytes().to_vec(),
            GET_QUEUE_NUM => 4_u64.to_le_bytes().to_vec(),
            // Index of the ring and its next entry. QEMU blocks until this reply when a machine
            // whose firmware has started the device is reset or stopped.
            GET_VRING_BASE => [&payload[..4], &[0; 4]].concat(),
            // Offset, length, flags, and the configuration, which begins with a disk's capacity in
            // sectors.
            GET_CONFIG => {
                payload[12..20].copy_from_slice(&2048_u64.to_le_bytes());
                payload
            }
            _ => continue,
        };
        let length = u32::try_from(answer.len()).unwrap();
        let mut message = [&header[..4], &5_u32.to_le_bytes(), &length.to_le_bytes()].concat();
        message.extend(answer);
        stream.write_all(&message).ok()?;
    }
}
