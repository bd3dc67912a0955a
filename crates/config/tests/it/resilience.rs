//! `retry-budget` and `outlier-ejection`: accepted and refused lines.

use crate::common::{accepted, report};
use spangate_config::model::{OutlierEjection, RetryBudget};
use std::time::Duration;

const DEFAULTS: &str =
    "defaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n";

#[test]
fn budgets_are_inherited_and_cancelled() {
    let config = accepted(&format!(
        "{DEFAULTS} retry-budget 20%\nbackend a\nbackend b\n retry-budget 0% min 3\nbackend c\n retry-budget none\n"
    ));
    let budgets: Vec<_> = config
        .proxies
        .iter()
        .map(|proxy| proxy.retry_budget)
        .collect();
    let budget = |percent, min_per_s| Some(RetryBudget { percent, min_per_s });
    assert_eq!(budgets, [budget(20, 10), budget(0, 3), None]);
}

#[test]
fn ejections_have_their_defaults() {
    let config = accepted(&format!(
        "{DEFAULTS}backend b\n default-server outlier-ejection errors 3 latency 2.5 ejection 1m max-ejected 100%\n \
         server a 10.0.0.1:80\n server b 10.0.0.1:80 outlier-ejection weight 7\n \
         server c 10.0.0.1:80 no-outlier-ejection\n \
         server d 10.0.0.1:80 outlier-ejection success-rate 90% requests 20 interval 5s check\n"
    ));
    let servers = &config.proxies[0].servers;
    let rules: Vec<_> = servers
        .iter()
        .map(|server| server.checks.ejection)
        .collect();
    let default = OutlierEjection::default();
    assert_eq!(
        rules,
        [
            Some(OutlierEjection {
                errors: 3,
                latency_percent: 250,
                ejection: Duration::from_secs(60),
                max_percent: 100,
                ..default
            }),
            Some(OutlierEjection {
                errors: 5,
                ..default
            }),
            None,
            Some(OutlierEjection {
                success_percent: 90,
                requests: 20,
                interval: Duration::from_secs(5),
                ..default
            }),
        ]
    );
    assert_eq!(servers[1].weight, 7);
    assert!(servers[3].checks.enabled);
}

#[test]
fn faults_name_the_word() {
    let cases = [
        (
            " retry-budget\n",
            "'retry-budget' expects a percentage as argument.",
        ),
        (
            " retry-budget 20\n",
            "'retry-budget' expects a percentage from 0% to 100%, got '20'.",
        ),
        (
            " retry-budget 101%\n",
            "'retry-budget' expects a percentage from 0% to 100%, got '101%'.",
        ),
        (
            " retry-budget 5% max 3\n",
            "'retry-budget' expects 'min' after its ratio, got 'max'.",
        ),
        (
            " retry-budget 5% min\n",
            "'min' expects a number as argument.",
        ),
        (
            " retry-budget 5% min -1\n",
            "'min' expects a number from 0 to 1000000, got '-1'.",
        ),
        (
            " retry-budget 5% min 1 2\n",
            "'retry-budget' cannot handle unexpected argument '2'.",
        ),
        (
            " retry-budget none 2\n",
            "'retry-budget' cannot handle unexpected argument '2'.",
        ),
        (
            " server s 10.0.0.1:80 outlier-ejection errors 0\n",
            "'errors' expects a number from 1 to 1000000, got '0'.",
        ),
        (
            " server s 10.0.0.1:80 outlier-ejection errors 3x\n",
            "'errors' expects a number from 1 to 1000000, got '3x'.",
        ),
        (
            " server s 10.0.0.1:80 outlier-ejection success-rate 0%\n",
            "'success-rate' expects a percentage from 1% to 100%, got '0%'.",
        ),
        (
            " server s 10.0.0.1:80 outlier-ejection latency 1\n",
            "'latency' expects a factor above 1 and up to 1000, got '1'.",
        ),
        (
            " server s 10.0.0.1:80 outlier-ejection latency 2.123\n",
            "'latency' expects a factor above 1 and up to 1000, got '2.123'.",
        ),
        (
            " server s 10.0.0.1:80 outlier-ejection latency 99999999999.5\n",
            "'latency' expects a factor above 1 and up to 1000, got '99999999999.5'.",
        ),
        (
            " server s 10.0.0.1:80 outlier-ejection interval 1\n",
            "'interval' expects a time from 10ms to 24h, got '1'.",
        ),
        (
            " server s 10.0.0.1:80 outlier-ejection ejection soon\n",
            "unexpected character 's' in 'ejection'.",
        ),
        (
            " server s 10.0.0.1:80 outlier-ejection max-ejected\n",
            "'max-ejected' expects a percentage as argument.",
        ),
        (
            " server s 10.0.0.1:80 outlier-ejection frequency 3\n",
            "'frequency'",
        ),
    ];
    for (line, message) in cases {
        let shown = report(&format!("{DEFAULTS}backend b\n{line}"));
        assert!(shown.contains(message), "{line}: '{message}' in\n{shown}");
    }
}
