# Written by `sluice infra terraform`: the one definition of sluice's table as a configuration. Run it again after an upgrade.

terraform {
  required_version = ">= 1.3"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "table_name" {
  description = "Name of the table. Another name makes another table."
  type        = string
  default     = "rate_limits"

  validation {
    condition     = can(regex("^[a-zA-Z0-9_.-]{3,255}$", var.table_name))
    error_message = "A table's name has 3 to 255 letters, digits, '_', '.' and '-'."
  }
}

variable "alarm_topic_arn" {
  description = "ARN of the SNS topic that alarms go to. Without one they show in the console alone."
  type        = string
  default     = ""
}

variable "read_units" {
  description = "Read units of the table. Acquires read only what they have not seen yet."
  type        = number
  default     = 10
}

variable "write_units" {
  description = "Write units of the table. An acquire takes 1, one of two buckets in a transaction 4."
  type        = number
  default     = 200
}

variable "index_read_units" {
  description = "Read units of each index. Only lists read them."
  type        = number
  default     = 10
}

variable "index_write_units" {
  description = "Write units of each index. New buckets and entities take 1, acquires of old ones none; too few throttle the table."
  type        = number
  default     = 200
}

resource "aws_dynamodb_table" "sluice" {
  name         = var.table_name
  billing_mode = "PROVISIONED"
  hash_key     = "PK"
  range_key    = "SK"

  read_capacity  = var.read_units
  write_capacity = var.write_units

  attribute {
    name = "PK"
    type = "S"
  }

  attribute {
    name = "SK"
    type = "S"
  }

  attribute {
    name = "GSI1PK"
    type = "S"
  }

  attribute {
    name = "GSI1SK"
    type = "S"
  }

  attribute {
    name = "GSI2PK"
    type = "S"
  }

  attribute {
    name = "GSI2SK"
    type = "S"
  }

  # Never project more than the keys: with ALL every acquire costs twice.
  global_secondary_index {
    name            = "GSI1"
    hash_key        = "GSI1PK"
    range_key       = "GSI1SK"
    projection_type = "KEYS_ONLY"
    read_capacity   = var.index_read_units
    write_capacity  = var.index_write_units
  }

  # Never project more than the keys: with ALL every acquire costs twice.
  global_secondary_index {
    name            = "GSI2"
    hash_key        = "GSI2PK"
    range_key       = "GSI2SK"
    projection_type = "KEYS_ONLY"
    read_capacity   = var.index_read_units
    write_capacity  = var.index_write_units
  }

  # Usage is the difference of the two images of a bucket.
  stream_enabled   = true
  stream_view_type = "NEW_AND_OLD_IMAGES"

  # What DynamoDB deletes was full, so that it comes back as it was.
  ttl {
    attribute_name = "ttl"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }

  # To delete the table, switch this off first: a table made anew has every bucket full.
  deletion_protection_enabled = true

  # Encrypted with a key that DynamoDB owns, which costs nothing. A key of your own is one more that acquires depend on.
}

# DynamoDB reports these only while they happen, whatever the billing, so that no data is good news. What is throttled once is
# tried again: an alarm wants 3 minutes out of 5.
locals {
  alarms = {
    # Reads are throttled: acquires that have to look at their bucket first fail or wait.
    "Table-ReadThrottleEvents" = {
      metric     = "ReadThrottleEvents"
      dimensions = {}
    }
    # Writes are throttled: a bucket is hot, or the table short of write units.
    "Table-WriteThrottleEvents" = {
      metric     = "WriteThrottleEvents"
      dimensions = {}
    }
    # Reads of the index are throttled: lists fail; acquires do without it.
    "GSI1-ReadThrottleEvents" = {
      metric     = "ReadThrottleEvents"
      dimensions = { GlobalSecondaryIndexName = "GSI1" }
    }
    # The index falls behind: then writes of the table that touch it are throttled too.
    "GSI1-WriteThrottleEvents" = {
      metric     = "WriteThrottleEvents"
      dimensions = { GlobalSecondaryIndexName = "GSI1" }
    }
    # Reads of the index are throttled: lists fail; acquires do without it.
    "GSI2-ReadThrottleEvents" = {
      metric     = "ReadThrottleEvents"
      dimensions = { GlobalSecondaryIndexName = "GSI2" }
    }
    # The index falls behind: then writes of the table that touch it are throttled too.
    "GSI2-WriteThrottleEvents" = {
      metric     = "WriteThrottleEvents"
      dimensions = { GlobalSecondaryIndexName = "GSI2" }
    }
    # Whole requests are throttled.
    "GetItem-ThrottledRequests" = {
      metric     = "ThrottledRequests"
      dimensions = { Operation = "GetItem" }
    }
    # DynamoDB fails: outcomes are unknown, and the failure policy decides.
    "GetItem-SystemErrors" = {
      metric     = "SystemErrors"
      dimensions = { Operation = "GetItem" }
    }
    # Whole requests are throttled.
    "BatchGetItem-ThrottledRequests" = {
      metric     = "ThrottledRequests"
      dimensions = { Operation = "BatchGetItem" }
    }
    # DynamoDB fails: outcomes are unknown, and the failure policy decides.
    "BatchGetItem-SystemErrors" = {
      metric     = "SystemErrors"
      dimensions = { Operation = "BatchGetItem" }
    }
    # Whole requests are throttled.
    "PutItem-ThrottledRequests" = {
      metric     = "ThrottledRequests"
      dimensions = { Operation = "PutItem" }
    }
    # DynamoDB fails: outcomes are unknown, and the failure policy decides.
    "PutItem-SystemErrors" = {
      metric     = "SystemErrors"
      dimensions = { Operation = "PutItem" }
    }
    # Whole requests are throttled.
    "UpdateItem-ThrottledRequests" = {
      metric     = "ThrottledRequests"
      dimensions = { Operation = "UpdateItem" }
    }
    # DynamoDB fails: outcomes are unknown, and the failure policy decides.
    "UpdateItem-SystemErrors" = {
      metric     = "SystemErrors"
      dimensions = { Operation = "UpdateItem" }
    }
    # Whole requests are throttled.
    "TransactWriteItems-ThrottledRequests" = {
      metric     = "ThrottledRequests"
      dimensions = { Operation = "TransactWriteItems" }
    }
    # DynamoDB fails: outcomes are unknown, and the failure policy decides.
    "TransactWriteItems-SystemErrors" = {
      metric     = "SystemErrors"
      dimensions = { Operation = "TransactWriteItems" }
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "sluice" {
  for_each = local.alarms

  alarm_name          = "${aws_dynamodb_table.sluice.name}-${each.key}"
  namespace           = "AWS/DynamoDB"
  metric_name         = each.value.metric
  dimensions          = merge({ TableName = aws_dynamodb_table.sluice.name }, each.value.dimensions)
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]
}

# Policies, for you to attach to roles. Each has what its role calls, and no more. Names of policies are an account's, not a
# region's: a prefix lets tables of one name, in two regions, have their own.
resource "aws_iam_policy" "acquire" {
  name_prefix = "${substr(var.table_name, 0, 80)}-acquire-"
  description = "sluice: acquires, settles, releases, peeks, looks entities up, and checks the table"

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      # Check compares the table with what is needed.
      {
        Sid      = "Check"
        Effect   = "Allow"
        Action   = ["dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"]
        Resource = aws_dynamodb_table.sluice.arn
      },
      # Buckets, overrides and entities; Query reads catalogs of names, and finds the per-limit items of a table that is being migrated.
      {
        Sid      = "Read"
        Effect   = "Allow"
        Action   = ["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"]
        Resource = aws_dynamodb_table.sluice.arn
        Condition = {
          "ForAllValues:StringLike" = { "dynamodb:LeadingKeys" = ["ENTITY#*", "KIND#*", "PLANS#", "CATALOG#*", "SYSTEM#"] }
        }
      },
      # Buckets, in transactions too, and the revision seen. Overrides of kinds (KIND#) and plans (PLANS#) and catalogs (CATALOG#) are out of reach.
      {
        Sid      = "Charge"
        Effect   = "Allow"
        Action   = ["dynamodb:PutItem", "dynamodb:UpdateItem"]
        Resource = aws_dynamodb_table.sluice.arn
        Condition = {
          "ForAllValues:StringLike" = { "dynamodb:LeadingKeys" = ["ENTITY#*", "SYSTEM#"] }
        }
      },
    ]
  })
}

resource "aws_iam_policy" "admin" {
  name_prefix = "${substr(var.table_name, 0, 80)}-admin-"
  description = "sluice: runs all commands of sluice"

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      # sluice table create, sluice table check.
      {
        Sid      = "Table"
        Effect   = "Allow"
        Action   = ["dynamodb:CreateTable", "dynamodb:DescribeTable", "dynamodb:UpdateTimeToLive", "dynamodb:DescribeTimeToLive", "dynamodb:UpdateContinuousBackups", "dynamodb:DescribeContinuousBackups"]
        Resource = aws_dynamodb_table.sluice.arn
      },
      # Buckets, entities, overrides, catalogs, grants; Query also serves entity erase.
      {
        Sid      = "Items"
        Effect   = "Allow"
        Action   = ["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:Query"]
        Resource = aws_dynamodb_table.sluice.arn
        Condition = {
          "ForAllValues:StringLike" = { "dynamodb:LeadingKeys" = ["ENTITY#*", "KIND#*", "PLANS#", "CATALOG#*", "SYSTEM#"] }
        }
      },
      # sluice migrate and sluice plan move, which read all items of the table, of other namespaces too.
      {
        Sid      = "Migrate"
        Effect   = "Allow"
        Action   = ["dynamodb:Scan"]
        Resource = aws_dynamodb_table.sluice.arn
      },
      # sluice entity children, sluice override list, sluice top.
      {
        Sid      = "Lists"
        Effect   = "Allow"
        Action   = ["dynamodb:Query"]
        Resource = "${aws_dynamodb_table.sluice.arn}/index/*"
        Condition = {
          "ForAllValues:StringLike" = { "dynamodb:LeadingKeys" = ["PARENT#*", "RESOURCE#*", "CONFIG#*"] }
        }
      },
    ]
  })
}

resource "aws_iam_policy" "aggregator" {
  name_prefix = "${substr(var.table_name, 0, 80)}-aggregator-"
  description = "sluice: reads the table's stream, and writes what was used and how far it has read"

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      # Each change of a bucket, with both images.
      {
        Sid      = "Stream"
        Effect   = "Allow"
        Action   = ["dynamodb:DescribeStream", "dynamodb:GetShardIterator", "dynamodb:GetRecords"]
        Resource = "${aws_dynamodb_table.sluice.arn}/stream/*"
      },
      # The table's streams; a Lambda function on one needs it too. It shows names alone, and can be allowed for all streams only.
      {
        Sid      = "ListStreams"
        Effect   = "Allow"
        Action   = ["dynamodb:ListStreams"]
        Resource = "*"
      },
      # What was used.
      {
        Sid      = "Windows"
        Effect   = "Allow"
        Action   = ["dynamodb:UpdateItem"]
        Resource = aws_dynamodb_table.sluice.arn
        Condition = {
          "ForAllValues:StringLike" = { "dynamodb:LeadingKeys" = ["ENTITY#*"] }
        }
      },
      # How far sluice aggregate has read; a Lambda function's are Lambda's affair.
      {
        Sid      = "Positions"
        Effect   = "Allow"
        Action   = ["dynamodb:Query", "dynamodb:PutItem"]
        Resource = aws_dynamodb_table.sluice.arn
        Condition = {
          "ForAllValues:StringLike" = { "dynamodb:LeadingKeys" = ["SYSTEM#"] }
        }
      },
    ]
  })
}

resource "aws_iam_policy" "read_only" {
  name_prefix = "${substr(var.table_name, 0, 80)}-read-only-"
  description = "sluice: runs the commands of sluice that change nothing"

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      # sluice table check.
      {
        Sid      = "Check"
        Effect   = "Allow"
        Action   = ["dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive", "dynamodb:DescribeContinuousBackups"]
        Resource = aws_dynamodb_table.sluice.arn
      },
      # sluice peek, entity show, plan show, override get and explain, usage; Query reads catalogs and the records of sluice audit, and finds per-limit items.
      {
        Sid      = "Read"
        Effect   = "Allow"
        Action   = ["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"]
        Resource = aws_dynamodb_table.sluice.arn
        Condition = {
          "ForAllValues:StringLike" = { "dynamodb:LeadingKeys" = ["ENTITY#*", "KIND#*", "PLANS#", "CATALOG#*", "SYSTEM#"] }
        }
      },
      # sluice migrate --dry-run, which reads all items of the table, of other namespaces too.
      {
        Sid      = "Migrate"
        Effect   = "Allow"
        Action   = ["dynamodb:Scan"]
        Resource = aws_dynamodb_table.sluice.arn
      },
      # sluice entity children, sluice override list, sluice top.
      {
        Sid      = "Lists"
        Effect   = "Allow"
        Action   = ["dynamodb:Query"]
        Resource = "${aws_dynamodb_table.sluice.arn}/index/*"
        Condition = {
          "ForAllValues:StringLike" = { "dynamodb:LeadingKeys" = ["PARENT#*", "RESOURCE#*", "CONFIG#*"] }
        }
      },
    ]
  })
}

output "table_name" {
  description = "For dynamo.New and --table."
  value       = aws_dynamodb_table.sluice.name
}

output "table_arn" {
  value = aws_dynamodb_table.sluice.arn
}

output "stream_arn" {
  value = aws_dynamodb_table.sluice.stream_arn
}

output "policy_arns" {
  description = "Of each role's policy."
  value = {
    "acquire"    = aws_iam_policy.acquire.arn
    "admin"      = aws_iam_policy.admin.arn
    "aggregator" = aws_iam_policy.aggregator.arn
    "read-only"  = aws_iam_policy.read_only.arn
  }
}
