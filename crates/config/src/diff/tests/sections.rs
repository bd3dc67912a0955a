//! Effects on `global` and other sections, secrets and large inputs.

use super::{comparison, effects, in_listen};
use std::fmt::Write as _;

#[test]
fn global_settings_change() {
    assert_eq!(
        effects(
            "global\n maxconn 5\n maxconn 6\n log 1.1.1.1 local0\n log 2.2.2.2 local0\n setenv A 1\n setenv B 2\n stats timeout 5s\n crt-base /a\n insecure-fork-wanted\n",
            "global\n maxconn 7\n log 2.2.2.2 local0\n setenv A 2\n stats socket /a mode 600\nglobal\n crt-base /b\n insecure-fork-wanted\n no insecure-fork-wanted\n"
        ),
        [
            "global setting crt-base 9~7: crt-base /a → crt-base /b",
            "global setting insecure-fork-wanted -10: insecure-fork-wanted !",
            "global list log -4: log 1.1.1.1 local0",
            "global setting maxconn 3~2: maxconn 6 → maxconn 7 !",
            "global setting setenv A 6~4: setenv A *** → setenv A *** !",
            "global setting setenv B -7: setenv B *** !",
            "global list stats socket +5: stats socket /a mode 600 !",
            "global setting stats timeout -8: stats timeout 5s !",
        ]
    );
}

#[test]
fn other_sections_change_line_by_line() {
    assert_eq!(
        effects(
            "resolvers r\n nameserver a 1.1.1.1:53\n nameserver b 1.1.1.2:53\n timeout retry 1s\nuserlist u\n user a password x\nring gone\n size 5\n",
            "mailers new\n timeout mail 5s\nresolvers r\n nameserver b 1.1.1.2:53\n timeout retry 2s\nuserlist u\n user a password x\n user b password y\n"
        ),
        [
            "ring gone section -7: ring gone !",
            "mailers new section +1: mailers new",
            "resolvers r list nameserver -2: nameserver a 1.1.1.1:53",
            "resolvers r list timeout 4~5: timeout retry 1s → timeout retry 2s",
            "userlist u list user +8: user b password ***",
        ]
    );
}

#[test]
fn the_order_counts_where_lines_depend_on_each_other() {
    assert_eq!(
        effects(
            "crt-store\n crt-base /a\n load crt a.pem\n",
            "crt-store\n load crt a.pem\n crt-base /a\n"
        ),
        ["crt-store list crt-base 2>3: crt-base /a"]
    );
}

#[test]
fn secrets_are_hidden_and_compared() {
    assert_eq!(
        in_listen(
            "stats auth admin:one\nhttp-request set-header Authorization \"Bearer abc\"\nhttp-request set-header X-Y \"$HOME/x\"",
            "stats auth admin:two\nhttp-request set-header Authorization \"Bearer def\"\nhttp-request set-header X-Y \"$HOME/y\"",
        ),
        [
            "list http-request 3~3: http-request set-header Authorization *** → http-request set-header Authorization ***",
            "list http-request 4~4: http-request set-header X-Y \"$HOME/x\" → http-request set-header X-Y \"$HOME/y\"",
            "list stats auth 2~2: stats auth admin:*** → stats auth admin:***",
        ]
    );
    let of_server = in_listen(
        "server a 1.1.1.1:1 tcp-md5sig one",
        "server a 1.1.1.1:1 tcp-md5sig two",
    );
    assert_eq!(
        of_server,
        ["server a tcp-md5sig 2~2: tcp-md5sig *** → tcp-md5sig ***"]
    );
}

#[test]
fn values_of_variables_are_compared_and_not_shown() {
    let text = |value: &str| {
        format!("global\n setenv KEY {value}\nlisten l\n http-request set-header X-Y \"$KEY\"\n")
    };
    assert_eq!(
        effects(&text("one"), &text("two")),
        [
            "global setting setenv KEY 2~2: setenv KEY *** → setenv KEY *** !",
            "listen l list http-request 4~4: http-request set-header X-Y \"$KEY\" → http-request set-header X-Y \"$KEY\"",
        ]
    );
}

#[test]
fn large_lists_are_compared() {
    // With these, a quadratic algorithm would take minutes.
    const RULES: usize = 20_000;
    let rules = |from: usize, step: usize| {
        let mut text = "frontend f\n".to_owned();
        for at in 0..RULES {
            let number = from + at * step % RULES;
            let _ = writeln!(
                text,
                " http-request set-header X-{number} v{number} if {{ path /{number} }}"
            );
        }
        text
    };
    let (old, new) = (rules(0, 1), rules(RULES / 2, 7919));
    let found = comparison(&old, &new);
    assert!(found.effects.len() > RULES / 2);
    let all_new = comparison(&old, &rules(RULES, 1));
    assert_eq!(all_new.effects.len(), 2 * RULES);
}
