// Package memdynamo is DynamoDB in the process: for tests that want the real thing's rules, prices and
// failures, without a network, Java or Docker.
//
//	engine := memdynamo.New()
//	client := engine.Client(func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
//
//	engine.Faults().Script(func(r memdynamo.Request) memdynamo.Fault {
//		if r.Operation == "PutItem" && r.Number == 1 {
//			return memdynamo.LoseReply
//		}
//		return memdynamo.None
//	})
//
//	_, err := client.PutItem(ctx, put)
//	fmt.Println("lost:", errors.Is(err, syscall.ECONNRESET))
//
// An Engine is an http.Handler that speaks DynamoDB's JSON protocol. Its clients are the SDK's own, on a
// transport without sockets, so a test runs what production runs, with its errors, retries and time-outs. It
// works in the bubbles of testing/synctest, on virtual time (an engine for a bubble is made in it), and has
// its own Faults and its own meter, Consumed.
//
// # What it serves
//
//   - tables: CreateTable, DescribeTable, UpdateTable, DeleteTable, ListTables, UpdateTimeToLive,
//     DescribeTimeToLive, DescribeContinuousBackups
//   - items: PutItem, GetItem, UpdateItem, DeleteItem, BatchGetItem, BatchWriteItem, TransactWriteItems,
//     Query, Scan
//   - streams: ListStreams, DescribeStream, GetShardIterator, GetRecords
//
// These have the whole expression language, DynamoDB's validation and its numbers: exact decimals of 38
// digits. Any other operation is an UnknownOperationException, such as PartiQL, TransactGetItems, tags,
// backups, global tables, imports and exports, auto scaling.
//
// # Differences from AWS
//
//   - All is in memory, of one region and one account. Tables and indexes are there, and gone, at once; a new
//     index has the items that fit it.
//   - A signature is wanted, and not checked: any credentials do. There are no rights.
//   - Any content type will do, and members of requests may be written in any case.
//   - Without Faults reads are never stale, indexes never behind, items deleted as they expire, and nothing
//     is throttled.
//   - A request that is under way arrives, whatever becomes of its client, unless Faults lose it.
//   - Legacy parameters (Expected, AttributeUpdates, ...) are refused.
//   - CreateTable accepts Tags, TableClass, SSESpecification and OnDemandThroughput, and drops them;
//     UpdateTable has none of them.
//   - An update that only removes makes an item of its key where there is none, as on DynamoDB Local. AWS is
//     said to make none.
//
// # Differences from DynamoDB Local
//
// This package does as AWS, as far as that is known, where the two differ:
//
//   - Index keys of the wrong type are refused on updates too.
//   - An action that cannot be done cancels its transaction, with ValidationError as the reason.
//   - UPDATED_OLD and UPDATED_NEW return the paths that an update names, not all around them.
//   - Failed conditions and cancelled transactions are billed, and transactions twice, not four times.
//   - A page ends at 1 MB, whatever the filter lets through.
//   - Transactions conflict, and partitions and tables are throttled, if Faults say so.
//   - Messages are AWS's.
//   - All credentials see the same tables.
//
// The tests in conformance and differential have the whole list.
package memdynamo
