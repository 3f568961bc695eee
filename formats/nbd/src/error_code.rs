//! What is answered when a request fails (section "Error values").

use core::fmt;

/// Why a request failed, in the words of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NbdError {
    /// `NBD_EPERM`: not permitted, as a write to what is read-only.
    Perm,
    /// `NBD_EIO`: the disk failed.
    Io,
    /// `NBD_ENOMEM`: no memory.
    Nomem,
    /// `NBD_EINVAL`: the request is wrong.
    Inval,
    /// `NBD_ENOSPC`: no room on the disk, or a write beyond its end.
    Nospc,
    /// `NBD_EOVERFLOW`: too long to be answered.
    Overflow,
    /// `NBD_ENOTSUP`: zeroes cannot be written faster than data.
    Notsup,
    /// `NBD_ESHUTDOWN`: the server is about to end.
    Shutdown,
}

impl NbdError {
    /// All there are, by their codes.
    pub const ALL: [Self; 8] = [
        Self::Perm,
        Self::Io,
        Self::Nomem,
        Self::Inval,
        Self::Nospc,
        Self::Overflow,
        Self::Notsup,
        Self::Shutdown,
    ];

    /// The value of the error field.
    pub const fn code(self) -> u32 {
        match self {
            Self::Perm => 1,
            Self::Io => 5,
            Self::Nomem => 12,
            Self::Inval => 22,
            Self::Nospc => 28,
            Self::Overflow => 75,
            Self::Notsup => 95,
            Self::Shutdown => 108,
        }
    }

    /// What the error field says; what the protocol has no word for is an I/O error.
    pub fn of_code(code: u32) -> Self {
        Self::ALL.into_iter().find(|error| error.code() == code).unwrap_or(Self::Io)
    }

    /// What an error number of Linux (`errno.h`) is answered as. Quotas and limits of
    /// files are no space (section "Error values"), a read-only file system and missing
    /// rights are not permitted; what the protocol has no word for is an I/O error.
    pub const fn of_errno(errno: i32) -> Self {
        match errno {
            // EPERM, EACCES, EROFS.
            1 | 13 | 30 => Self::Perm,
            // ENOMEM.
            12 => Self::Nomem,
            // EINVAL.
            22 => Self::Inval,
            // EFBIG, ENOSPC, EDQUOT.
            27 | 28 | 122 => Self::Nospc,
            // EOVERFLOW.
            75 => Self::Overflow,
            // EOPNOTSUPP, which is ENOTSUP.
            95 => Self::Notsup,
            // ESHUTDOWN.
            108 => Self::Shutdown,
            _ => Self::Io,
        }
    }
}

impl fmt::Display for NbdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Perm => "operation not permitted",
            Self::Io => "input/output error",
            Self::Nomem => "cannot allocate memory",
            Self::Inval => "invalid argument",
            Self::Nospc => "no space left on device",
            Self::Overflow => "value too large",
            Self::Notsup => "operation not supported",
            Self::Shutdown => "the server is being shut down",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_specification() {
        let codes = NbdError::ALL.map(NbdError::code);
        assert_eq!(codes, [1, 5, 12, 22, 28, 75, 95, 108]);
    }

    #[test]
    fn errors_of_the_system_are_said_in_the_protocols_words() {
        for error in NbdError::ALL {
            assert_eq!(NbdError::of_errno(error.code().try_into().unwrap()), error);
        }
        for (errno, expected) in [
            (13, NbdError::Perm),
            (30, NbdError::Perm),
            (27, NbdError::Nospc),
            (122, NbdError::Nospc),
            (0, NbdError::Io),
            (-1, NbdError::Io),
            (110, NbdError::Io),
        ] {
            assert_eq!(NbdError::of_errno(errno), expected, "{errno}");
        }
    }
}
