//! The requests of a front-end, by name.

macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $wire:literal;)*) => {
        /// The requests of a front-end that this back-end implements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Request {
            $($(#[$doc])* $name = $code,)*
        }

        impl Request {
            /// Every request, ascending by code.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The request with this code.
            pub const fn from_code(code: u32) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Its name in the specification, without `VHOST_USER_`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $wire,)*
                }
            }
        }
    };
}

requests! {
    /// Virtio features offered.
    GetFeatures = 1, "GET_FEATURES";
    /// Virtio features chosen.
    SetFeatures = 2, "SET_FEATURES";
    /// A session begins.
    SetOwner = 3, "SET_OWNER";
    /// Deprecated; disables all rings.
    ResetOwner = 4, "RESET_OWNER";
    /// The VM's memory, all of it.
    SetMemTable = 5, "SET_MEM_TABLE";
    /// The log of pages written, for migration.
    SetLogBase = 6, "SET_LOG_BASE";
    /// Our way to say that the log changed.
    SetLogFd = 7, "SET_LOG_FD";
    /// A ring's size.
    SetVringNum = 8, "SET_VRING_NUM";
    /// A ring's addresses.
    SetVringAddr = 9, "SET_VRING_ADDR";
    /// A ring's next available index.
    SetVringBase = 10, "SET_VRING_BASE";
    /// Stops a ring and asks where it stands.
    GetVringBase = 11, "GET_VRING_BASE";
    /// The driver's way to notify us.
    SetVringKick = 12, "SET_VRING_KICK";
    /// Our way to notify the driver.
    SetVringCall = 13, "SET_VRING_CALL";
    /// Our way to report a broken ring.
    SetVringErr = 14, "SET_VRING_ERR";
    /// Protocol features offered.
    GetProtocolFeatures = 15, "GET_PROTOCOL_FEATURES";
    /// Protocol features chosen.
    SetProtocolFeatures = 16, "SET_PROTOCOL_FEATURES";
    /// Queue pairs offered.
    GetQueueNum = 17, "GET_QUEUE_NUM";
    /// Enables or disables a ring.
    SetVringEnable = 18, "SET_VRING_ENABLE";
    /// Announces the VM in the network.
    SendRarp = 19, "SEND_RARP";
    /// The MTU the guest will use.
    NetSetMtu = 20, "NET_SET_MTU";
    /// A channel for requests of ours.
    SetBackendReqFd = 21, "SET_BACKEND_REQ_FD";
    /// Reads configuration space.
    GetConfig = 24, "GET_CONFIG";
    /// Writes configuration space.
    SetConfig = 25, "SET_CONFIG";
    /// A new record of what is in flight, kept by the front-end for us.
    GetInflightFd = 31, "GET_INFLIGHT_FD";
    /// The record of what was in flight when we were last here.
    SetInflightFd = 32, "SET_INFLIGHT_FD";
    /// Resets the device.
    ResetDevice = 34, "RESET_DEVICE";
    /// How many regions can be added one by one.
    GetMaxMemSlots = 36, "GET_MAX_MEM_SLOTS";
    /// Adds a memory region.
    AddMemReg = 37, "ADD_MEM_REG";
    /// Removes a memory region.
    RemMemReg = 38, "REM_MEM_REG";
    /// The virtio device status.
    SetStatus = 39, "SET_STATUS";
    /// Asks for the virtio device status.
    GetStatus = 40, "GET_STATUS";
}

impl core::fmt::Display for Request {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}
