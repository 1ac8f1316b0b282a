package infra

import (
	"fmt"
	"slices"
	"strings"
)

// Role is somebody who works on the table, named by what it is for.
type Role string

// The five roles.
const (
	Acquire    Role = "acquire"     // services: acquire, wait, settle, release, peek, look-ups, Check
	Admin      Role = "admin"       // operators: all commands, and lim.Entities() and lim.Config in a service
	Aggregator Role = "aggregator"  // who reads the table's stream and writes what was used
	ReadOnly   Role = "read-only"   // commands that change nothing
	RegionSync Role = "region-sync" // sluice region, or a Lambda function, where regions divide limits
)

// Roles returns all roles.
func Roles() []Role { return []Role{Acquire, Admin, Aggregator, ReadOnly, RegionSync} }

// where is a resource of a policy's statement.
type where string

const (
	table      where = "table"
	indexes    where = "indexes"
	streams    where = "streams" // all: one that is enabled anew has another name
	everything where = "everything"
	objects    where = "objects" // what regions publish
	bucket     where = "bucket"  // that they publish in
)

// service is the one that is there.
func (w where) service() string {
	if w == objects || w == bucket {
		return "s3"
	}
	return "dynamodb"
}

// statement is one of a policy: what is allowed where.
type statement struct {
	Sid     string
	Why     string
	Actions []string // without their service
	On      where
	// Leading are what the hash key of each item must be like, in the default namespace. Without it, the
	// statement is not about items.
	Leading []string
	// Whole says that the statement is about the table of all namespaces: one that is for a namespace has it
	// not.
	Whole bool
}

// role is a Role with what it may do. Each action is there because something calls it: roles_test.go records
// the calls. A transaction needs no action of its own but its items'.
type role struct {
	Role       Role
	What       string
	Statements []statement
}

// The hash keys of the table. Acquires and usage write none below kinds, plans and catalogs: what is there
// changes the limits of everybody at once.
const (
	entities = "ENTITY#*"
	kinds    = "KIND#*"
	plans    = "PLANS#"
	catalogs = "CATALOG#*"
	system   = "SYSTEM#"
	buckets  = "RESOURCE#*" // in an index
)

// items returns the hash keys of all items of the default namespace. A reader of these does not read other
// namespaces.
func items() []string { return []string{entities, kinds, plans, catalogs, system} }

// lists returns the hash keys of the indexes likewise.
func lists() []string { return []string{"PARENT#*", buckets, "CONFIG#*"} }

// published reports that r is about what regions publish: without a place for that there is no such role.
func (r role) published() bool {
	return slices.ContainsFunc(r.Statements, func(s statement) bool { return s.On == objects })
}

// roles returns the rights of every role.
func roles() []role {
	return []role{acquirer(), admin(), aggregator(), reader(), regionSync()}
}

// acquirer returns the rights of a process that acquires.
func acquirer() role {
	return role{Acquire,
		"acquires, settles, releases, peeks, looks entities up, and checks the table", []statement{
			{
				Sid: "Check", Why: "Check compares the table with what is needed.",
				Actions: []string{"DescribeTable", "DescribeTimeToLive"}, On: table,
			},
			{
				Sid: "Read", Why: "Buckets, overrides and entities; Query reads catalogs of names, and finds the " +
					"per-limit items of a table that is being migrated.",
				Actions: []string{"GetItem", "BatchGetItem", "Query"}, On: table, Leading: items(),
			},
			{
				Sid: "Charge", Why: "Buckets, in transactions too, and the revision seen. Overrides of kinds (KIND#) " +
					"and plans (PLANS#) and catalogs (CATALOG#) are out of reach.",
				Actions: []string{"PutItem", "UpdateItem"}, On: table, Leading: []string{entities, system},
			},
		}}
}

// admin returns the rights of an administrator.
func admin() role {
	return role{Admin,
		"runs all commands of sluice", []statement{
			{
				Sid: "Table", Why: "sluice table create, sluice table check.",
				Actions: []string{
					"CreateTable", "DescribeTable", "UpdateTimeToLive", "DescribeTimeToLive", "UpdateContinuousBackups",
					"DescribeContinuousBackups",
				},
				On: table, Whole: true,
			},
			{
				Sid: "Items", Why: "Buckets, entities, overrides, catalogs, grants; Query also serves entity erase.",
				Actions: []string{"GetItem", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem", "Query"},
				On:      table, Leading: items(),
			},
			{
				Sid: "Migrate", Why: "sluice migrate and sluice plan move, which read all items of the table, of other " +
					"namespaces too.",
				Actions: []string{"Scan"}, On: table, Whole: true,
			},
			{
				Sid: "Lists", Why: "sluice entity children, sluice override list, sluice top.",
				Actions: []string{"Query"}, On: indexes, Leading: lists(),
			},
		}}
}

// readStream returns the rights of those that read the table's stream.
func readStream() []statement {
	return []statement{
		{
			Sid: "Stream", Why: "Each change of a bucket, with both images.",
			Actions: []string{"DescribeStream", "GetShardIterator", "GetRecords"}, On: streams,
		},
		{
			Sid: "ListStreams", Why: "The table's streams; a Lambda function on one needs it too. It shows names " +
				"alone, and can be allowed for all streams only.",
			Actions: []string{"ListStreams"}, On: everything,
		},
	}
}

// aggregator returns the rights of the aggregator.
func aggregator() role {
	return role{Aggregator,
		"reads the table's stream, and writes what was used and how far it has read", append(readStream(),
			[]statement{
				{
					Sid: "Windows", Why: "What was used.",
					Actions: []string{"UpdateItem"}, On: table, Leading: []string{entities},
				},
				{
					Sid: "Positions", Why: "How far sluice aggregate has read; a Lambda function's are Lambda's affair.",
					Actions: []string{"Query", "PutItem"}, On: table, Leading: []string{system},
				},
			}...)}
}

// reader returns the rights of someone who only reads.
func reader() role {
	return role{ReadOnly,
		"runs the commands of sluice that change nothing", []statement{
			{
				Sid: "Check", Why: "sluice table check.",
				Actions: []string{"DescribeTable", "DescribeTimeToLive", "DescribeContinuousBackups"}, On: table,
				Whole: true,
			},
			{
				Sid: "Read", Why: "sluice peek, entity show, plan show, override get and explain, usage; Query reads " +
					"catalogs and the records of sluice audit, and finds per-limit items.",
				Actions: []string{"GetItem", "BatchGetItem", "Query"}, On: table, Leading: items(),
			},
			{
				Sid: "Migrate", Why: "sluice migrate --dry-run, which reads all items of the table, of other " +
					"namespaces too.",
				Actions: []string{"Scan"}, On: table, Whole: true,
			},
			{
				Sid: "Lists", Why: "sluice entity children, sluice override list, sluice top.",
				Actions: []string{"Query"}, On: indexes, Leading: lists(),
			},
		}}
}

// regionSync returns the rights of regional sync. Templates print its text as the description of the policy,
// which AWS and Terraform replace if the description changes: the text stays as it was first published.
func regionSync() role {
	return role{RegionSync,
		"shares limits out between regions: publishes what this one holds, and stores its shares",
		append(readStream(), []statement{
			{
				Sid: "Buckets", Why: "Which entities there are.",
				Actions: []string{"Query"}, On: indexes, Leading: []string{buckets},
			},
			{
				Sid: "Read", Why: "Their buckets and quotas, the heartbeat, and the table's owner.",
				Actions: []string{"GetItem", "BatchGetItem"}, On: table, Leading: []string{entities, kinds, system},
			},
			{
				Sid:     "Share",
				Why:     "Quotas, which are overrides of entities. Overrides of kinds (KIND#) are out of reach.",
				Actions: []string{"UpdateItem"}, On: table, Leading: []string{entities},
			},
			{
				Sid: "Beat", Why: "The heartbeat.",
				Actions: []string{"PutItem"}, On: table, Leading: []string{system},
			},
			{
				Sid: "Publish", Why: "What this region holds, and what the others say.",
				Actions: []string{"GetObject", "PutObject"}, On: objects,
			},
			{
				Sid:     "Bucket",
				Why:     "Without it S3 denies what is not there yet, as if it were forbidden. It shows names.",
				Actions: []string{"ListBucket"}, On: bucket,
			},
		}...)}
}

// lookup returns what a role may do.
func lookup(name Role) (role, error) {
	names := make([]string, 0, len(roles()))
	for _, r := range roles() {
		if r.Role == name {
			return r, nil
		}
		names = append(names, string(r.Role))
	}
	return role{}, fmt.Errorf("role %q is unknown: pass one of %s", name, strings.Join(names, ", "))
}
