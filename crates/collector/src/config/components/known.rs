//! Types of the Collector and its collection that are not built here: a name that is in these lists
//! is no slip.

use super::Role;

/// Whether others have a kind of this name.
pub(crate) fn is_known(role: Role, kind: &str) -> bool {
    names(role).contains(&kind)
}

/// Names of a role's kinds that we lack.
pub(crate) fn names(role: Role) -> &'static [&'static str] {
    match role {
        Role::Receiver => RECEIVERS,
        Role::Processor => PROCESSORS,
        Role::Exporter => EXPORTERS,
        Role::Extension => EXTENSIONS,
        Role::Connector => CONNECTORS,
    }
}

#[rustfmt::skip]
const RECEIVERS: &[&str] = &[
    "opencensus", "kafkametrics", "prometheus_simple", "prometheus_remote_write", "statsd",
    "filelog", "file_log", "httpcheck", "http_check", "postgresql", "mysql", "redis", "mongodb", "nginx", "apache", "rabbitmq", "elasticsearch", "memcached",
    "azure_event_hub", "azureeventhub", "elasticapmintake", "docker_stats", "kubeletstats", "kubelet_stats", "k8s_cluster", "k8s_events", "k8sobjects", "journald",
    "syslog", "tcplog", "udplog", "windowseventlog", "fluentforward", "fluent_forward", "influxdb", "carbon", "collectd", "awsxray", "awscontainerinsightreceiver",
    "awsecscontainermetrics", "awsfirehose", "awss3", "datadog", "skywalking", "splunk_hec", "signalfx", "sapm", "loki", "webhookevent", "webhook_event",
    "googlecloudpubsub", "googlecloudspanner", "otlpjsonfile", "otlp_json_file", "otelarrow", "faro", "pulsar", "solace", "sqlquery", "sqlserver", "snmp", "vcenter",
    "receiver_creator", "github", "gitlab", "zookeeper", "jmx", "mongodbatlas", "oracledb", "purefa", "netflow", "nsxt", "cloudflare", "chrony", "bigip", "aerospike",
];

#[rustfmt::skip]
const PROCESSORS: &[&str] = &[
    "deltatorate",
    "elasticapm", "logdedup", "log_dedup", "span", "routing", "groupbyattrs", "metricsgeneration", "metricstransform", "metrics_transform", "metricstarttime",
    "interval", "geoip", "remotetap", "schema", "sumologic", "datadog", "coralogix", "unroll", "isolationforest", "dnslookup", "lookup", "spanmetrics", "servicegraph",
    "experimental_metricsgeneration", "intervalprocessor", "queuebatch", "logstransform", "genainormalizer", "yang_grpc",
];

#[rustfmt::skip]
const EXPORTERS: &[&str] = &[
    "zipkin", "elasticsearch", "datadog", "awsxray",
    "awsemf", "awscloudwatchlogs", "awss3", "aws_s3", "awskinesis", "azuremonitor", "azure_monitor", "azuredataexplorer", "azure_data_explorer", "azureblob", "googlecloud",
    "google_cloud", "googlecloudpubsub", "googlemanagedprometheus", "googlecloudstorage", "loki", "splunk_hec", "signalfx", "sapm", "clickhouse", "coralogix", "dataset",
    "carbon", "cassandra", "doris", "faro", "honeycombmarker", "influxdb", "jaeger_storage_exporter", "logicmonitor", "logzio", "mackerelotlp", "mezmo", "opensearch",
    "otelarrow", "pulsar", "rabbitmq", "sentry", "stef", "sumologic", "syslog", "tencentcloud_logservice", "tinybird", "alertmanager", "alibabacloud_logservice",
    "bmchelix", "jaeger_thrift", "instana", "skywalking", "parquet", "topic", "tanzuobservability", "f5cloud", "dynatrace", "newrelic",
];

#[rustfmt::skip]
const EXTENSIONS: &[&str] = &[
    "memory_limiter", "jaeger_query", "jaeger_storage", "opamp",
    "azure_auth", "oidc", "oauth2client", "oauth2_client", "sigv4auth", "asapclient", "ack", "awsproxy", "cgroupruntime", "db_storage", "redis_storage",
    "docker_observer", "ecs_observer", "ecs_task_observer", "host_observer", "k8s_observer", "kafkatopics_observer", "cfgarden_observer", "googleclientauth",
    "http_forwarder", "jaegerremotesampling", "jaeger_remote_sampling", "remotetap", "solarwindsapmsettings", "sumologic", "text_encoding", "json_log_encoding",
    "otlp_encoding", "jaeger_encoding", "zipkin_encoding", "avro_log_encoding", "aws_logs_encoding", "azure_encoding", "skywalking_encoding", "googlecloudlogentry_encoding",
    "k8s_leader_elector", "datadog", "opamp_custommessages", "tail_storage", "remote_sampling",
];

#[rustfmt::skip]
const CONNECTORS: &[&str] = &[
    "datadog", "elasticapm", "routing", "failover", "grafanacloud", "otlpjson",
    "signal_to_metrics", "signaltometrics", "slowsql", "sum", "metricsaslogs", "drain",
];
