//! Disks of a VM.

use super::accelerator::Accelerator;

/// Connection of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Attachment {
    /// virtio over vhost-user, on this socket.
    VhostUser(String),
    /// IDE, emulated by QEMU, whose NBD driver connects to this URI.
    Ide(String),
}

/// Disk of a VM.
#[derive(Clone, Debug)]
pub struct GuestDisk {
    attachment: Attachment,
    /// Number of queues, for a disk over vhost-user.
    pub queues: u16,
    /// Additional properties of the device, like `,packed=on`.
    pub properties: String,
}

impl GuestDisk {
    /// Returns a disk over vhost-user with one queue. QEMU connects, and reconnects.
    pub fn new(socket: impl Into<String>) -> Self {
        let attachment = Attachment::VhostUser(socket.into());
        Self { attachment, queues: 1, properties: String::new() }
    }

    /// Returns a disk on an IDE bus, for guests without virtio drivers.
    pub fn on_ide(uri: impl Into<String>) -> Self {
        Self { attachment: Attachment::Ide(uri.into()), queues: 1, properties: String::new() }
    }

    pub(crate) fn is_on_ide(&self) -> bool {
        matches!(self.attachment, Attachment::Ide(_))
    }

    /// Returns QEMU's arguments for the device with this number.
    pub(crate) fn arguments(&self, index: usize, accelerator: Accelerator) -> Vec<String> {
        let Self { queues, properties, .. } = self;
        let arguments = match &self.attachment {
            Attachment::VhostUser(socket) => {
                let vectors = accelerator.vectors(queues + 1);
                [
                    "-chardev".to_owned(),
                    format!("socket,id=disk{index},path={socket},reconnect=1"),
                    "-device".to_owned(),
                    format!(
                        "vhost-user-blk-pci,id=blk{index},chardev=disk{index},\
                         num-queues={queues},vectors={vectors}{properties}"
                    ),
                ]
            }
            Attachment::Ide(uri) => [
                "-drive".to_owned(),
                format!("file={uri},format=raw,if=none,id=drive{index}"),
                "-device".to_owned(),
                format!("ide-hd,bus=ide.0,drive=drive{index}{properties}"),
            ],
        };
        arguments.into()
    }
}
