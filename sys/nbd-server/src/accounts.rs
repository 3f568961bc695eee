//! Users and groups of this host from `/etc/passwd` and `/etc/group` (passwd(5), group(5)).
//!
//! The files are read directly: the C library would load modules for other name services, which the
//! confined daemon cannot map.

use std::collections::BTreeSet;
use std::path::Path;

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

/// Reason why a name cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The file cannot be read.
    #[error("{file} cannot be read: {error}")]
    Unreadable {
        /// Path of the unreadable file.
        file: &'static str,
        /// Error of the system call.
        error: std::io::Error,
    },
    /// There is no such user.
    #[error("user `{0}` is not in /etc/passwd; give the number of a user defined elsewhere")]
    NoUser(String),
    /// There is no such group.
    #[error("group `{0}` is not in /etc/group; give the number of a group defined elsewhere")]
    NoGroup(String),
}

/// Ids of users and groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Ids of the listed users.
    pub users: Vec<u32>,
    /// Ids of the listed groups.
    pub groups: Vec<u32>,
}

impl Accounts {
    /// Returns the ids of users and groups given by name or id. The users that a group's line in
    /// `/etc/group` lists are added to the users.
    ///
    /// # Errors
    /// A name does not exist, or a file cannot be read.
    pub fn resolve(users: &[String], groups: &[String]) -> Result<Self, AccountError> {
        let lines = |file: &'static str, is_needed: bool| {
            if !is_needed {
                return Ok(String::new());
            }
            let read = std::fs::read(Path::new(file));
            let read = read.map_err(|error| AccountError::Unreadable { file, error })?;
            Ok(String::from_utf8_lossy(&read).into_owned())
        };
        let passwd = lines(PASSWD, !users.is_empty() || !groups.is_empty())?;
        let group = lines(GROUP, !groups.is_empty())?;
        Self::in_lines(&passwd, &group, users, groups)
    }

    fn in_lines(
        passwd: &str,
        group: &str,
        users: &[String],
        groups: &[String],
    ) -> Result<Self, AccountError> {
        let mut ids = (BTreeSet::new(), BTreeSet::new());
        for name in users {
            let number = number_of(passwd, name).or_else(|| name.parse().ok());
            ids.0.insert(number.ok_or_else(|| AccountError::NoUser(name.clone()))?);
        }
        for name in groups {
            let number = number_of(group, name).or_else(|| name.parse().ok());
            let number = number.ok_or_else(|| AccountError::NoGroup(name.clone()))?;
            ids.1.insert(number);
            ids.0.extend(members(group, number).filter_map(|member| number_of(passwd, member)));
        }
        Ok(Self { users: ids.0.into_iter().collect(), groups: ids.1.into_iter().collect() })
    }
}

/// Returns the number in the third field of the line whose first field is `name`; `None` if there
/// is no such line.
fn number_of(lines: &str, name: &str) -> Option<u32> {
    let mut fields = lines.lines().map(|line| line.split(':'));
    fields.find_map(|mut line| (line.next()? == name).then(|| line.nth(1)?.parse().ok())?)
}

/// Returns the names of users in the fourth field of the lines whose third field is `group`.
fn members(lines: &str, group: u32) -> impl Iterator<Item = &str> {
    let of_group = lines.lines().filter_map(move |line| {
        let mut fields = line.split(':').skip(2);
        (fields.next()?.parse() == Ok(group)).then(|| fields.next())?
    });
    of_group.flat_map(|names| names.split(',')).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD_LINES: &str = "root:x:0:0:root:/root:/bin/sh\nqemu:x:107:107::/:/no\nann:x:1000:1000\n\
                                broken\n:x:5\n";
    const GROUP_LINES: &str = "root:x:0:\nkvm:x:36:qemu,ann,gone\nalso-kvm:x:36:root\nodd\n";

    fn find(users: &[&str], groups: &[&str]) -> Result<(Vec<u32>, Vec<u32>), String> {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let accounts = Accounts::in_lines(PASSWD_LINES, GROUP_LINES, &list(users), &list(groups));
        accounts
            .map(|accounts| (accounts.users, accounts.groups))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn names_and_numbers_are_found_and_members_of_groups_are_users() {
        assert_eq!(find(&[], &[]), Ok((vec![], vec![])));
        assert_eq!(find(&["qemu", "4711", "root"], &[]), Ok((vec![0, 107, 4711], vec![])));
        assert_eq!(find(&[], &["kvm"]), Ok((vec![0, 107, 1000], vec![36])));
        assert_eq!(find(&["ann"], &["99"]), Ok((vec![1000], vec![99])));
    }

    #[test]
    fn missing_accounts_are_reported() {
        assert!(find(&["qemu", "bob"], &[]).unwrap_err().contains("user `bob` is not in"));
        assert!(find(&["broken"], &[]).is_err());
        assert!(find(&[], &["odd"]).unwrap_err().contains("group `odd` is not in"));
    }

    #[test]
    fn the_host_s_own_files_are_read() {
        let root = Accounts::resolve(&["root".to_owned()], &["root".to_owned()]).unwrap();
        assert!(root.users.contains(&0) && root.groups == [0]);
    }
}
