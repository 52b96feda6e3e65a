package azure

import (
	"drover/driver/kit"
)

// The rates are token buckets of two kinds, and a call takes from each that it counts under. Those of Azure Resource Manager hold for a
// principal in a subscription and region (https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling),
// those of Microsoft.Compute for a subscription and region (https://learn.microsoft.com/azure/virtual-machines/compute-throttling-limits),
// which says them by the minute. Microsoft.Network's, on the former page, are of all changes in five minutes; its 10,000 reads are beyond
// those of Azure Resource Manager. Azure Resource Graph's are of who asks, in five seconds
// (https://learn.microsoft.com/azure/governance/resource-graph/concepts/guidance-for-throttled-requests).
var rates = map[string]kit.Rate{
	"reads":     {Burst: 250, PerSecond: 25},
	"writes":    {Burst: 200, PerSecond: 10},
	"deletes":   {Burst: 200, PerSecond: 10},
	"put VM":    {Burst: 1500, PerSecond: 8},
	"update VM": {Burst: 1500, PerSecond: 8},
	"delete VM": {Burst: 1500, PerSecond: 8},
	"list VMs":  {Burst: 900, PerSecond: 5},

	"network deletes": {Burst: 100, PerSecond: 3}, // with which no five minutes have more than 1,000
	"queries":         {Burst: 5, PerSecond: 2},   // with which no five seconds have more than 15
}

// counts says what each call counts under. The price list is another service, which publishes no rate.
var counts = map[string][]string{
	"CreateVM":        {"writes", "put VM"},
	"UpdateVM":        {"writes", "update VM"},
	"StartVM":         {"writes", "update VM"},
	"DeallocateVM":    {"writes", "delete VM"},
	"DeleteVM":        {"deletes", "delete VM"},
	"DeleteDisk":      {"deletes"},
	"DeleteInterface": {"deletes", "network deletes"},
	"DeleteAddress":   {"deletes", "network deletes"},
	"GetVM":           {"reads"},
	"ListVMs":         {"reads", "list VMs"},
	"ListVMStates":    {"reads", "list VMs"},
	"ListInterfaces":  {"reads"},
	"ListAddresses":   {"reads"},
	"ListDisks":       {"reads"},
	"ListImages":      {"reads"},
	"ListTypes":       {"reads"},
	"ListQuotas":      {"reads"},
	"Query":           {"queries"},
}
