# Written by `sluice metrics terraform`: alarms on what sluice measures. Run it again after an upgrade.

terraform {
  required_version = ">= 1.3"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "alarm_topic_arn" {
  description = "ARN of the SNS topic that alarms go to. Without one they show in the console alone."
  type        = string
  default     = ""
}

variable "namespace" {
  description = "CloudWatch namespace that the collector sends sluice's own metrics to."
  type        = string
  default     = "sluice"
}

variable "table_name" {
  description = "Name of the table that WriteBudget is about."
  type        = string
  default     = "rate_limits"
}

variable "write_budget" {
  description = "Write units that the table may use in a minute. 0 for no alarm."
  type        = number
  default     = 0
}

variable "denied_percent" {
  description = "Percentage of acquires that may be denied. 0 for no alarm."
  type        = number
  default     = 0
}

variable "aggregator_function" {
  description = "Name of the Lambda function that aggregates usage. Without one, nobody watches the stream."
  type        = string
  default     = ""
}

variable "throttled_table" {
  description = "Name of a table to watch for throttling and failures. Leave it out for one that sluice infra made: it has these alarms."
  type        = string
  default     = ""
}

# Most come only while something is wrong, so that no data is good news. What happens once may pass: an alarm wants 3 minutes out of 5.
locals {
  alarms = {
    # Calls fail because the installation is at fault: a table, a right or a script is missing. The log says which.
    "setup-failures" = {
      wanted     = true
      namespace  = var.namespace
      metric     = "sluice.decisions"
      statistic  = "Sum"
      threshold  = 1
      dimensions = { "sluice.outcome" = "failed", "error.type" = "setup" }
    }
    # Calls are refused because the store does not answer, and the failure policy is deny.
    "unavailable" = {
      wanted     = true
      namespace  = var.namespace
      metric     = "sluice.decisions"
      statistic  = "Sum"
      threshold  = 1
      dimensions = { "sluice.outcome" = "failed", "error.type" = "unavailable" }
    }
    # Calls are refused because the store throttles, and the failure policy is deny: a bucket is hot, or the table short of units.
    "throttled" = {
      wanted     = true
      namespace  = var.namespace
      metric     = "sluice.decisions"
      statistic  = "Sum"
      threshold  = 1
      dimensions = { "sluice.outcome" = "failed", "error.type" = "throttled" }
    }
    # The store does not answer, or throttles: calls are admitted that it has no record of.
    "degraded" = {
      wanted     = true
      namespace  = var.namespace
      metric     = "sluice.decisions"
      statistic  = "Sum"
      threshold  = 1
      dimensions = { "sluice.outcome" = "degraded" }
    }
    # Calls fail because too many write to the same bucket at once.
    "contended" = {
      wanted     = true
      namespace  = var.namespace
      metric     = "sluice.decisions"
      statistic  = "Sum"
      threshold  = 1
      dimensions = { "sluice.outcome" = "failed", "error.type" = "contended" }
    }
    # Leases could not be settled or released: what was charged stands.
    "settlements-lost" = {
      wanted     = true
      namespace  = var.namespace
      metric     = "sluice.settlements"
      statistic  = "Sum"
      threshold  = 1
      dimensions = { "sluice.outcome" = "failed" }
    }
    # Leases could not be extended: their calls were told to end, and others may have their slots.
    "leases-lost" = {
      wanted     = true
      namespace  = var.namespace
      metric     = "sluice.leases.lost"
      statistic  = "Sum"
      threshold  = 1
      dimensions = {}
    }
    # Calls to the store end without a reply: time-outs, or failures of the store.
    "replies-lost" = {
      wanted     = true
      namespace  = var.namespace
      metric     = "sluice.store.calls"
      statistic  = "Sum"
      threshold  = 1
      dimensions = { "sluice.outcome" = "unknown" }
    }
    # A circuit breaker is open: the store answered nothing during several calls, and only probes ask it.
    "breaker-open" = {
      wanted     = true
      namespace  = var.namespace
      metric     = "sluice.breakers.open"
      statistic  = "Maximum"
      threshold  = 1
      dimensions = {}
    }
    # The clock of a host is off by more than a second, which costs refill. Look at its time synchronisation.
    "clock-skew" = {
      wanted     = true
      namespace  = var.namespace
      metric     = "sluice.clock.skew"
      statistic  = "Sum"
      threshold  = 1
      dimensions = {}
    }
    # The table costs more than it should: it takes more write units than its budget.
    "over-budget" = {
      wanted     = var.write_budget > 0
      namespace  = "AWS/DynamoDB"
      metric     = "ConsumedWriteCapacityUnits"
      statistic  = "Sum"
      threshold  = var.write_budget
      dimensions = { "TableName" = var.table_name }
    }
    # Usage is a quarter of an hour behind. The stream keeps what was not read for 24 hours.
    "stream-behind" = {
      wanted     = var.aggregator_function != ""
      namespace  = "AWS/Lambda"
      metric     = "IteratorAge"
      statistic  = "Maximum"
      threshold  = 900000
      dimensions = { "FunctionName" = var.aggregator_function }
    }
    # Whole requests are throttled: a bucket is hot, or the table short of units.
    "GetItem-throttled" = {
      wanted     = var.throttled_table != ""
      namespace  = "AWS/DynamoDB"
      metric     = "ThrottledRequests"
      statistic  = "Sum"
      threshold  = 1
      dimensions = { "TableName" = var.throttled_table, "Operation" = "GetItem" }
    }
    # DynamoDB fails: outcomes are unknown, and the failure policy decides.
    "GetItem-failures" = {
      wanted     = var.throttled_table != ""
      namespace  = "AWS/DynamoDB"
      metric     = "SystemErrors"
      statistic  = "Sum"
      threshold  = 1
      dimensions = { "TableName" = var.throttled_table, "Operation" = "GetItem" }
    }
    # Whole requests are throttled: a bucket is hot, or the table short of units.
    "BatchGetItem-throttled" = {
      wanted     = var.throttled_table != ""
      namespace  = "AWS/DynamoDB"
      metric     = "ThrottledRequests"
      statistic  = "Sum"
      threshold  = 1
      dimensions = { "TableName" = var.throttled_table, "Operation" = "BatchGetItem" }
    }
    # DynamoDB fails: outcomes are unknown, and the failure policy decides.
    "BatchGetItem-failures" = {
      wanted     = var.throttled_table != ""
      namespace  = "AWS/DynamoDB"
      metric     = "SystemErrors"
      statistic  = "Sum"
      threshold  = 1
      dimensions = { "TableName" = var.throttled_table, "Operation" = "BatchGetItem" }
    }
    # Whole requests are throttled: a bucket is hot, or the table short of units.
    "PutItem-throttled" = {
      wanted     = var.throttled_table != ""
      namespace  = "AWS/DynamoDB"
      metric     = "ThrottledRequests"
      statistic  = "Sum"
      threshold  = 1
      dimensions = { "TableName" = var.throttled_table, "Operation" = "PutItem" }
    }
    # DynamoDB fails: outcomes are unknown, and the failure policy decides.
    "PutItem-failures" = {
      wanted     = var.throttled_table != ""
      namespace  = "AWS/DynamoDB"
      metric     = "SystemErrors"
      statistic  = "Sum"
      threshold  = 1
      dimensions = { "TableName" = var.throttled_table, "Operation" = "PutItem" }
    }
    # Whole requests are throttled: a bucket is hot, or the table short of units.
    "UpdateItem-throttled" = {
      wanted     = var.throttled_table != ""
      namespace  = "AWS/DynamoDB"
      metric     = "ThrottledRequests"
      statistic  = "Sum"
      threshold  = 1
      dimensions = { "TableName" = var.throttled_table, "Operation" = "UpdateItem" }
    }
    # DynamoDB fails: outcomes are unknown, and the failure policy decides.
    "UpdateItem-failures" = {
      wanted     = var.throttled_table != ""
      namespace  = "AWS/DynamoDB"
      metric     = "SystemErrors"
      statistic  = "Sum"
      threshold  = 1
      dimensions = { "TableName" = var.throttled_table, "Operation" = "UpdateItem" }
    }
    # Whole requests are throttled: a bucket is hot, or the table short of units.
    "TransactWriteItems-throttled" = {
      wanted     = var.throttled_table != ""
      namespace  = "AWS/DynamoDB"
      metric     = "ThrottledRequests"
      statistic  = "Sum"
      threshold  = 1
      dimensions = { "TableName" = var.throttled_table, "Operation" = "TransactWriteItems" }
    }
    # DynamoDB fails: outcomes are unknown, and the failure policy decides.
    "TransactWriteItems-failures" = {
      wanted     = var.throttled_table != ""
      namespace  = "AWS/DynamoDB"
      metric     = "SystemErrors"
      statistic  = "Sum"
      threshold  = 1
      dimensions = { "TableName" = var.throttled_table, "Operation" = "TransactWriteItems" }
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "sluice" {
  for_each = { for name, alarm in local.alarms : name => alarm if alarm.wanted }

  alarm_name          = "sluice-${each.key}"
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.dimensions
  statistic           = each.value.statistic
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  threshold           = each.value.threshold
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]
}

# More calls are denied than should be: demand has grown, or a limit is wrong.
resource "aws_cloudwatch_metric_alarm" "denied" {
  count = var.denied_percent == 0 ? 0 : 1

  alarm_name          = "sluice-denied"
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  threshold           = var.denied_percent
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]

  metric_query {
    id          = "share"
    label       = "percent"
    expression  = "100 * refused / FILL(asked, 1)"
    return_data = true
  }

  metric_query {
    id = "refused"

    metric {
      namespace   = var.namespace
      metric_name = "sluice.decisions"
      dimensions  = { "sluice.outcome" = "denied" }
      stat        = "Sum"
      period      = 60
    }
  }

  metric_query {
    id = "asked"

    metric {
      namespace   = var.namespace
      metric_name = "sluice.decisions"
      stat        = "Sum"
      period      = 60
    }
  }
}
