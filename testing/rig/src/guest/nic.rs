//! NICs of a VM.

use super::accelerator::Accelerator;

/// NIC of a VM: virtio over vhost-user or a TAP device.
#[derive(Clone, Debug)]
pub struct GuestNic {
    /// Socket of the switch's port; empty for a TAP device.
    pub socket: String,
    /// Name of the TAP device that QEMU creates and removes, instead of a socket.
    pub tap: Option<String>,
    /// MAC address.
    pub mac: String,
    /// Number of queue pairs.
    pub queues: u16,
    /// True if QEMU listens and the switch connects.
    pub listens: bool,
    /// Additional properties of the device, like `,packed=on`.
    pub properties: String,
}

impl GuestNic {
    /// Returns a NIC with one queue pair that connects to the switch.
    pub fn new(socket: impl Into<String>, mac: impl Into<String>) -> Self {
        Self {
            socket: socket.into(),
            tap: None,
            mac: mac.into(),
            queues: 1,
            listens: false,
            properties: String::new(),
        }
    }

    /// Returns a NIC whose other end is a TAP device on the host. It reports a speed of one gigabit
    /// and full duplex, without which it is not aggregated.
    pub fn on_tap(device: impl Into<String>, mac: impl Into<String>) -> Self {
        let properties = ",speed=1000,duplex=full".to_owned();
        Self { tap: Some(device.into()), properties, ..Self::new("", mac) }
    }

    /// Returns QEMU's arguments for the back-end with this number.
    fn backend(&self, index: usize) -> Vec<String> {
        if let Some(device) = &self.tap {
            let tap =
                format!("tap,id=net{index},ifname={device},script=no,downscript=no,vhost=off");
            return ["-netdev".to_owned(), tap].into();
        }
        let Self { socket, queues, .. } = self;
        let side = if self.listens { "server=on" } else { "reconnect=1" };
        [
            "-chardev".to_owned(),
            format!("socket,id=nic{index},path={socket},{side}"),
            "-netdev".to_owned(),
            format!("vhost-user,id=net{index},chardev=nic{index},queues={queues}"),
        ]
        .into()
    }

    /// Returns QEMU's arguments for the device with this number.
    pub(crate) fn arguments(&self, index: usize, accelerator: Accelerator) -> Vec<String> {
        let mut arguments = self.backend(index);
        let Self { queues, mac, properties, .. } = self;
        let multiqueue = if *queues > 1 { ",mq=on" } else { "" };
        let vectors = accelerator.vectors(queues * 2 + 2);
        arguments.push("-device".to_owned());
        arguments.push(format!(
            "virtio-net-pci,netdev=net{index},mac={mac},rx_queue_size=1024,\
             tx_queue_size=1024,vectors={vectors}{multiqueue}{properties}"
        ));
        arguments
    }
}
