//! Lists of users and passwords.

use collector::run::auth::users;

/// Whatever a list is, it is users of different names or an error, and never told is a password.
pub fn htpasswd(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match users(text) {
        Ok(users) => {
            let lines = text.lines().count();
            assert!(users.len() <= lines);
            let mut names: Vec<&[u8]> = users.iter().map(|user| user.name.as_bytes()).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count);
            assert!(
                names
                    .iter()
                    .all(|name| !name.iter().any(|b| b":\n".contains(b)))
            );
        }
        Err(why) => assert!(!why.is_empty() && !why.contains('\n'), "{why}"),
    }
}
